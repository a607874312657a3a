"""KeepOperatorFormRule: forms of an operator that have no quantized counterpart."""

from __future__ import annotations

from collections.abc import Iterator

from trtdeploy.precision.quantization.rules.rule import Kept, LayerContext


class KeepOperatorFormRule:
    """Keep layers whose weight is no constant, whose operands are not FP32, and the like."""

    is_binding = True

    def find(self, context: LayerContext) -> Iterator[Kept]:
        """Yield layers with an obstacle."""
        for name, layer in context.layers.items():
            if layer.obstacle:
                yield name, layer.obstacle
