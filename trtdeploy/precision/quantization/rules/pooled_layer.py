"""KeepPooledLayerRule: convolutions of a single pixel."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import NodeProto, numpy_helper

from trtdeploy.graph.attributes import integer_of, value_of
from trtdeploy.graph.index import Scope
from trtdeploy.precision.quantization.layers import CONV
from trtdeploy.precision.quantization.rules.flow import data_of, find_reached
from trtdeploy.precision.quantization.rules.rule import Kept, LayerContext

_GLOBAL_POOLS = frozenset({"GlobalAveragePool", "GlobalMaxPool"})
_REDUCTIONS = frozenset({"ReduceMean", "ReduceMax"})
_SPATIAL_AXES = ({2, 3}, {-2, -1})
_POINTWISE = frozenset(
    {"Relu", "LeakyRelu", "Sigmoid", "HardSigmoid", "HardSwish", "Clip", "Tanh", "Erf", "Mul",
     "Div", "Add", "Sub", "Identity", "Dropout", "BatchNormalization", CONV}
)  # fmt: skip


class KeepPooledLayerRule:
    """Keep convolutions whose image is 1x1: squeeze-and-excite and its kind.

    They take no time that 8 bits could shorten, a Q/DQ pair would cost more, and what they
    compute multiplies whole channels. Off in small models.
    """

    is_binding = False

    def find(self, context: LayerContext) -> Iterator[Kept]:
        """Yield convolutions behind a global pooling."""
        if not context.has_many_layers:
            return
        main = context.index.main
        seeds = [node.output[0] for node in main.nodes if _pools_all(main, node)]

        def carries(node: NodeProto, found: frozenset[str]) -> bool:
            return node.op_type in _POINTWISE and found.issuperset(data_of(main, node))

        pooled = find_reached(context.index, seeds, carries)
        for name, layer in context.layers.items():
            if layer.node.op_type == CONV and pooled.intersection(layer.data):
                yield name, "its image is a single pixel: there is no time to win"


def _pools_all(scope: Scope, node: NodeProto) -> bool:
    if node.op_type in _GLOBAL_POOLS:
        return True
    if node.op_type not in _REDUCTIONS or not integer_of(node, "keepdims", 1):
        return False
    axes = value_of(node, "axes")
    if len(node.input) > 1 and node.input[1]:
        tensor = scope.constant_of(node.input[1])
        axes = None if tensor is None else tuple(np.atleast_1d(numpy_helper.to_array(tensor)))
    return isinstance(axes, tuple) and {int(axis) for axis in axes} in _SPATIAL_AXES
