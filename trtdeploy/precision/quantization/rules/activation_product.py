"""KeepActivationProductRule: products of two activations, attention above all."""

from __future__ import annotations

from collections.abc import Iterator

from trtdeploy.core.number_formats import INT8
from trtdeploy.precision.neighbours import MOVERS
from trtdeploy.precision.quantization.layers import MATMUL, Layer
from trtdeploy.precision.quantization.rules.flow import find_reached
from trtdeploy.precision.quantization.rules.rule import Kept, LayerContext
from trtdeploy.precision.rules.readers import Reader, walk_readers

_AFTER_SOFTMAX = MOVERS | {"Where", "IsNaN"}
_BEFORE_SOFTMAX = MOVERS | {"Add", "Sub", "Mul", "Div", "Where", "Max", "Clip"}
_MAX_STEPS = 8
_PRODUCT = "a product of two activations"


class KeepActivationProductRule:
    """Keep a MatMul of two activations, except those of attention in FP8.

    TensorRT's fused attention takes FP16, BF16 and FP8. An INT8 pair inside breaks the fusion, and
    INT8 steps are too coarse for probabilities, most of which are near 0.
    """

    is_binding = False

    def find(self, context: LayerContext) -> Iterator[Kept]:
        """Yield products of two activations."""
        products = [layer for layer in context.layers.values() if is_activation_product(layer)]
        probabilities = find_probabilities(context) if products else set()
        for layer in products:
            if context.kind is INT8:
                yield layer.name, f"{_PRODUCT}: INT8 would break up TensorRT's fused attention"
            elif not (probabilities.intersection(layer.data) or _feeds_softmax(layer)):
                yield layer.name, f"{_PRODUCT} that is not part of attention"


def is_activation_product(layer: Layer) -> bool:
    """True for a MatMul without a constant operand."""
    return layer.node.op_type == MATMUL and len(layer.data_slots) > 1


def find_probabilities(context: LayerContext) -> set[str]:
    """Return the results of every Softmax, moved or masked."""
    seeds = [node.output[0] for node in context.index.main.nodes if node.op_type == "Softmax"]
    return find_reached(context.index, seeds, lambda node, _: node.op_type in _AFTER_SOFTMAX)


def _feeds_softmax(layer: Layer) -> bool:
    readers = walk_readers(layer.scope, layer.node, _carries_scores, max_steps=_MAX_STEPS)
    return any(reader.node.op_type == "Softmax" for reader in readers)


def _carries_scores(reader: Reader) -> bool:
    return reader.node.op_type in _BEFORE_SOFTMAX
