"""The shape of a quantization rule, and what it may look at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from trtdeploy.core.number_formats import QuantizedType
from trtdeploy.graph.index import ModelIndex
from trtdeploy.precision.pins import Pin
from trtdeploy.precision.plan import PrecisionPlan
from trtdeploy.precision.quantization.layers import Layer

Kept = tuple[str, str]
"""Layer name and reason."""
FEW_LAYERS = 10
"""With fewer layers than this, leaving some out for speed would leave next to nothing."""


@dataclass(frozen=True)
class LayerContext:
    """A model seen by quantization rules.

    Attributes:
        index: The model, prepared for quantization.
        layers: Every layer by name, in graph order.
        kind: The 8-bit type of the recipe.
        precision: What the recipe's floating-point type would do to the same model.
        pinned: Wishes of the user by node name.
    """

    index: ModelIndex
    layers: Mapping[str, Layer]
    kind: QuantizedType
    precision: PrecisionPlan
    pinned: Mapping[str, Pin]

    @property
    def has_many_layers(self) -> bool:
        """True when some layers can be left out and most of the work still be quantized."""
        return sum(layer.weight is not None for layer in self.layers.values()) >= FEW_LAYERS


class LayerRule(Protocol):
    """Finds layers that must not be quantized.

    Attributes:
        is_binding: Not even a pin of the user overrules it.
    """

    is_binding: bool

    def find(self, context: LayerContext) -> Iterator[Kept]:
        """Yield each layer to keep with the reason."""
        ...
