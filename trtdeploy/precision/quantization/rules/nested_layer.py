"""KeepNestedLayerRule: layers inside If, Loop and Scan."""

from __future__ import annotations

from collections.abc import Iterator

from trtdeploy.precision.quantization.rules.rule import Kept, LayerContext


class KeepNestedLayerRule:
    """Keep layers of bodies.

    A body runs sometimes or often: its values have no range that one calibration run sees, and
    TensorRT fuses nothing across its border.
    """

    is_binding = True

    def find(self, context: LayerContext) -> Iterator[Kept]:
        """Yield layers outside the main graph."""
        for name, layer in context.layers.items():
            owner = layer.scope.owner
            if owner is not None:
                yield name, f"it lies inside {owner.op_type} {owner.name!r}"
