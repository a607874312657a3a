"""KeepPinnedLayerRule: layers that the user wants in floating point."""

from __future__ import annotations

from collections.abc import Iterator

from trtdeploy.precision.quantization.rules.rule import Kept, LayerContext


class KeepPinnedLayerRule:
    """Keep layers pinned to FP32 or FP16."""

    is_binding = True

    def find(self, context: LayerContext) -> Iterator[Kept]:
        """Yield layers with such a pin."""
        for name in context.layers:
            pin = context.pinned.get(name)
            if pin is not None and pin.kind is None:
                yield name, f"pinned to {pin.precision.upper()} by {pin.text!r}"
