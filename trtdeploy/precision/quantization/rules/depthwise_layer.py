"""KeepDepthwiseLayerRule: convolutions of one channel each."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from trtdeploy.graph.attributes import integer_of
from trtdeploy.precision.quantization.layers import CONV, Layer
from trtdeploy.precision.quantization.rules.rule import Kept, LayerContext


class KeepDepthwiseLayerRule:
    """Keep depthwise convolutions, which lose most and win least. Off in small models.

    They sum a handful of products, so rounding is not averaged out, and one scale serves the data
    of all channels, however their ranges differ: most of what INT8 costs a MobileNet (measured:
    docs/quantization-accuracy.md). They have a few percent of the arithmetic. TensorRT does have
    INT8 kernels for them, which save bandwidth: a pin quantizes them after all.
    """

    is_binding = False

    def find(self, context: LayerContext) -> Iterator[Kept]:
        """Yield depthwise convolutions."""
        if not context.has_many_layers:
            return
        for name, layer in context.layers.items():
            if layer.weight is not None and _is_depthwise(layer):
                products = prod(layer.weight.dims[2:])
                yield (
                    name,
                    f"a depthwise convolution: a sum of {products} products does not average "
                    "rounding out, and there is little arithmetic to speed up",
                )


def _is_depthwise(layer: Layer) -> bool:
    """True when each output sums over one of several channels."""
    one_each = layer.weight is not None and list(layer.weight.dims[1:2]) == [1]
    return one_each and layer.node.op_type == CONV and integer_of(layer.node, "group", 1) > 1
