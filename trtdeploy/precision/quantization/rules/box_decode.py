"""KeepBoxDecodeRule: expectations over a probability distribution."""

from __future__ import annotations

from collections.abc import Iterator

from trtdeploy.precision.neighbours import MOVERS
from trtdeploy.precision.quantization.layers import CONV
from trtdeploy.precision.quantization.rules.flow import find_reached
from trtdeploy.precision.quantization.rules.rule import Kept, LayerContext


class KeepBoxDecodeRule:
    """Keep a Conv that reads a Softmax: the weighted sum that decodes the sides of boxes.

    Its weights are 0, 1, 2, ...; an 8-bit probability moves a box by whole pixels.
    """

    is_binding = False

    def find(self, context: LayerContext) -> Iterator[Kept]:
        """Yield convolutions behind a Softmax and moves."""
        for name in find_box_decoders(context):
            yield name, "it decodes boxes: it reads the probabilities of a Softmax"


def find_box_decoders(context: LayerContext) -> list[str]:
    """Return the names of the convolutions behind a Softmax and moves."""
    seeds = [node.output[0] for node in context.index.main.nodes if node.op_type == "Softmax"]
    reached = find_reached(context.index, seeds, lambda node, _: node.op_type in MOVERS)
    return [
        name
        for name, layer in context.layers.items()
        if layer.node.op_type == CONV and reached.intersection(layer.data)
    ]
