"""KeepSoftmaxRule: probabilities that are results, not attention weights."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import NodeProto

from trtdeploy.graph.index import Scope
from trtdeploy.precision.context import RuleContext
from trtdeploy.precision.operators import Q_DQ_OPERATORS
from trtdeploy.precision.rules.readers import Reader, walk_readers
from trtdeploy.precision.rules.rule import Kept

_SOFTMAX = frozenset({"Softmax", "LogSoftmax", "Hardmax"})
_ON_THE_WAY = frozenset({"Dropout", "Identity", "Cast", "Where", "IsNaN"}) | Q_DQ_OPERATORS


class KeepSoftmaxRule:
    """Keep Softmax, LogSoftmax and Hardmax unless their result only weights a MatMul.

    Between two matrix products TensorRT's fused attention accumulates in FP32 by itself, and a
    Cast there would break the fusion. Anywhere else the sum over many classes stays FP32.
    """

    def find(self, context: RuleContext) -> Iterator[Kept]:
        """Yield softmax nodes outside attention."""
        for scope, node in context.index.nodes():
            if node.op_type in _SOFTMAX and not _only_weights_products(scope, node):
                yield node.name, f"{node.op_type} sums exponentials over many values"


def _only_weights_products(scope: Scope, node: NodeProto) -> bool:
    if _is_result(scope, node):
        return False
    products = 0
    for reader in walk_readers(scope, node, _carries_on):
        if reader.node.op_type == "MatMul":
            products += 1
        elif not _carries_on(reader) or _is_result(reader.scope, reader.node):
            return False
    return products > 0


def _carries_on(reader: Reader) -> bool:
    return reader.node.op_type in _ON_THE_WAY


def _is_result(scope: Scope, node: NodeProto) -> bool:
    return any(name in scope.outputs for name in node.output)
