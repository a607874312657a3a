"""What quantization decided: one decision and one reason per layer, and where Q/DQ pairs go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from trtdeploy.core.dtypes import DType
from trtdeploy.core.number_formats import QuantizedType

RECIPE_RULE = "recipe"
"""The rule of a decision that no rule objected to."""


@dataclass(frozen=True)
class LayerDecision:
    """What becomes of one layer: a Conv, ConvTranspose, Gemm or MatMul.

    Attributes:
        quantized: The type its operands are quantized to; None leaves the layer as it was.
        rule: Class name of the rule that decided, or ``recipe``.
        reason: Why, in words a report can print.
    """

    quantized: QuantizedType | None
    rule: str
    reason: str


@dataclass(frozen=True)
class QuantizedOperand:
    """An activation that a node reads through a Q/DQ pair.

    Attributes:
        node: Name of the reading node.
        slot: Which of its inputs.
        tensor: The value, as named in the model that was planned.
        group: Operands of one group and kind share a scale: the value that it is measured on.
        kind: The 8-bit type.
    """

    node: str
    slot: int
    tensor: str
    group: str
    kind: QuantizedType


@dataclass(frozen=True)
class QuantizedWeight:
    """A constant that a layer reads through DequantizeLinear.

    Attributes:
        node: Name of the layer.
        slot: Which of its inputs.
        tensor: The initializer, as named in the model that was planned.
        axis: Axis with one scale per index; None for one scale in all.
        kind: The 8-bit type.
    """

    node: str
    slot: int
    tensor: str
    axis: int | None
    kind: QuantizedType


@dataclass(frozen=True)
class QuantizationPlan:
    """Decisions for a whole model.

    Attributes:
        layers: Decision by node name, for every layer that could be quantized.
        operands: Where activations pass through Q/DQ pairs.
        weights: Which constants are stored in 8 bits.
        measured: Values whose thresholds the plan needs, in graph order: those that the tensors of
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

    def quantized_layers(self) -> dict[str, DType]:
        """Return the 8-bit type of each quantized layer."""
        return {
            name: decision.quantized.dtype
            for name, decision in self.layers.items()
            if decision.quantized is not None
        }

    def count_by_rule(self) -> dict[str, int]:
        """Return how many layers each rule decided about, the recipe's own included."""
        return dict(Counter(decision.rule for decision in self.layers.values()))

    def to_dict(self) -> dict[str, object]:
        """Return plain data for manifests and reports."""
        return {
            "layers": {
                name: {
                    "quantized": decision.quantized.name if decision.quantized else None,
                    "rule": decision.rule,
                    "reason": decision.reason,
                }
                for name, decision in self.layers.items()
            },
            "operands": [
                {"node": o.node, "slot": o.slot, "tensor": o.tensor, "group": o.group,
                 "kind": o.kind.name}
                for o in self.operands
            ],
            "weights": [
                {"node": w.node, "slot": w.slot, "tensor": w.tensor, "axis": w.axis,
                 "kind": w.kind.name}
                for w in self.weights
            ],
            "measured": list(self.measured),
            "notes": list(self.notes),
        }  # fmt: skip
