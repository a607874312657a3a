"""KeepBrokenWeightRule: weights that hold something else than numbers."""

from __future__ import annotations

from collections.abc import Iterator

from trtdeploy.precision.quantization.rules.rule import Kept, LayerContext


class KeepBrokenWeightRule:
    """Keep layers whose weight holds NaN or infinity, which no 8-bit integer has."""

    is_binding = True

    def find(self, context: LayerContext) -> Iterator[Kept]:
        """Yield layers with such a weight."""
        for name, layer in context.layers.items():
            if layer.weight is None or layer.obstacle:
                continue
            found = context.index.model.measure_initializer(layer.weight)
            if found.has_nan or found.has_inf:
                what = "NaN" if found.has_nan else "infinity"
                yield name, f"its weight {layer.weight.name!r} holds {what}"
