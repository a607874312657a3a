"""KeepFloat32LayerRule: what does not even fit FP16."""

from __future__ import annotations

from collections.abc import Iterator

from trtdeploy.core.dtypes import DType
from trtdeploy.precision.quantization.rules.rule import Kept, LayerContext


class KeepFloat32LayerRule:
    """Keep layers that the recipe's floating-point type keeps in FP32."""

    is_binding = False

    def find(self, context: LayerContext) -> Iterator[Kept]:
        """Yield layers with the reason of the rule that keeps them FP32."""
        if context.precision.recipe.low is None:
            return
        for name in context.layers:
            decision = context.precision.nodes.get(name)
            if decision is not None and decision.dtype is DType.FLOAT32:
                yield name, f"it stays FP32: {decision.reason}"
