"""What quantization decided: one decision and one reason per layer, and where Q/DQ pairs go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trtdeploy.core.dtypes import DType
from trtdeploy.core.number_formats import QUANTIZED_TYPES, QuantizedType

RECIPE_RULE = "recipe"
"""The rule of a decision that no rule objected to."""


@dataclass(frozen=True)
class LayerDecision:
    """What becomes of one layer: a Conv, ConvTranspose, Gemm or MatMul.

    Attributes:
        quantized: Name of the type its operands are quantized to; None leaves the layer as it
            was.
        rule: Class name of the rule that decided, or ``recipe``.
        reason: Why, in words a report can print.
    """

    quantized: str | None
    rule: str
    reason: str

    @property
    def kind(self) -> QuantizedType | None:
        """The type of that name."""
        return None if self.quantized is None else QUANTIZED_TYPES[self.quantized]


@dataclass(frozen=True)
class _QuantizedInput:
    """What a node reads in 8 bits: ``tensor`` is named as in the model that was planned."""

    node: str
    slot: int
    tensor: str
    kind: QuantizedType


@dataclass(frozen=True)
class QuantizedOperand(_QuantizedInput):
    """An activation that a node reads through a Q/DQ pair.

    Attributes:
        group: Operands of one group and kind share a scale: the value that it is measured on.
    """

    group: str


@dataclass(frozen=True)
class QuantizedWeight(_QuantizedInput):
    """A constant that a layer reads through DequantizeLinear.

    Attributes:
        axis: Axis with one scale per index; None for one scale in all.
    """

    axis: int | None


@dataclass(frozen=True)
class QuantizationPlan:
    """Decisions for a whole model.

    Attributes:
        layers: Decision by node name, for every layer that could be quantized.
        operands: Where activations pass through Q/DQ pairs.
        weights: Which constants are stored in 8 bits.
        measured: Values whose amax the plan needs, in graph order: those that the tensors of
            ``operands`` are copies of.
        scale_dtype: Type that can hold every scale: that of the graph around the layers.
        notes: What a person should know beside the decisions.
    """

    layers: Mapping[str, LayerDecision]
    operands: tuple[QuantizedOperand, ...]
    weights: tuple[QuantizedWeight, ...]
    measured: tuple[str, ...]
    scale_dtype: DType = DType.FLOAT32
    notes: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """True when nothing is to be inserted."""
        return not self.operands and not self.weights
