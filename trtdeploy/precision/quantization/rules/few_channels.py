"""KeepFewChannelsRule: sums too short for 8-bit hardware."""

from __future__ import annotations

from collections.abc import Iterator

from trtdeploy.graph.attributes import integer_of
from trtdeploy.precision.quantization.layers import CONV, CONV_TRANSPOSE, Layer
from trtdeploy.precision.quantization.rules.rule import Kept, LayerContext

MIN_CHANNELS = 16
"""An 8-bit Tensor Core instruction sums 32 products (PTX ISA, mma.m16n8k32); TensorRT's INT8
activations come in vectors of 32 channels, those of FP16 in vectors of 8 (TensorRT documentation,
data formats). Below 16 channels more than half of both is padding."""


class KeepFewChannelsRule:
    """Keep layers that sum over fewer than 16 channels, where FP16 is as fast. Off in small models.

    A convolution with groups sums over the channels of one group.
    """

    is_binding = False

    def find(self, context: LayerContext) -> Iterator[Kept]:
        """Yield layers with few channels."""
        if not context.has_many_layers:
            return
        for name, layer in context.layers.items():
            if layer.weight is None or layer.obstacle:
                continue
            channels = _count_summed(layer)
            if channels < MIN_CHANNELS:
                hardware = f"{context.kind.name} hardware works on 32 at a time"
                yield name, f"it sums over {channels} channels, and {hardware}: no time to win"


def _count_summed(layer: Layer) -> int:
    """Return over how many channels one output sums."""
    dims = list(layer.weight.dims) if layer.weight is not None else []
    if layer.node.op_type == CONV:
        return dims[1] if len(dims) > 1 else 1
    if layer.node.op_type == CONV_TRANSPOSE:
        return int(dims[0] // max(integer_of(layer.node, "group", 1), 1))
    if len(dims) == 1:
        return int(dims[0])
    if layer.axis is None:  # a batch of matrices
        return int(dims[-2] if layer.weight_slot == 1 else dims[-1])
    return int(dims[-2] if layer.axis == len(dims) - 1 else dims[-1])
