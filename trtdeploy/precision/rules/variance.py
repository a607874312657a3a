"""KeepVarianceRule: normalisations written out by hand."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import NodeProto

from trtdeploy.core.dtypes import DType
from trtdeploy.graph.index import Scope
from trtdeploy.precision.context import RuleContext
from trtdeploy.precision.neighbours import MOVERS
from trtdeploy.precision.rules.readers import Reader, walk_readers
from trtdeploy.precision.rules.rule import Kept

_SUMS = frozenset({"ReduceMean", "ReduceSum", "GlobalAveragePool", "AveragePool"})
_SUMS_OF_SQUARES = frozenset({"ReduceSumSquare", "ReduceL2"})
_ON_THE_WAY = frozenset({"Add", "Sub", "Sqrt", "Pow", "Reciprocal", "Max", "Clip"})
_PRODUCTS = frozenset({"Mul", "Div"})
_MAX_STEPS = 8
_SQUARE = 2


class KeepVarianceRule:
    """Keep the square, the mean of squares, and the root and division that follow.

    Matches ``Div(d, Sqrt(Add(ReduceMean(Pow(d, 2)), eps)))`` and its spellings: the square as
    ``Mul(d, d)`` or inside ``ReduceSumSquare`` and ``ReduceL2``, the end as
    ``Mul(d, Reciprocal(Sqrt(...)))``, the mean as a sum divided by a count, ``E[x^2] - E[x]^2``
    (then the mean too), no epsilon, ``Max`` or ``Clip`` in its place, reshapes in between. Squares
    of activations above 255 overflow FP16 (255.9^2 = 65504).
    """

    def find(self, context: RuleContext) -> Iterator[Kept]:
        """Yield the nodes of each pattern."""
        for scope, node in context.index.nodes():
            if node.op_type in _SUMS:
                square = _find_square(context, scope, node.input[0])
                if square is None:
                    continue
                yield square.name, _explain(node)
            elif node.op_type not in _SUMS_OF_SQUARES:
                continue
            yield node.name, _explain(node)
            for found in _follow(context, scope, node):
                yield found.name, _explain(node)


def _explain(node: NodeProto) -> str:
    return f"part of the variance or norm around {node.name!r}: squares overflow"


def _find_square(context: RuleContext, scope: Scope, name: str) -> NodeProto | None:
    """Return the node that computes ``name`` as a square."""
    node = scope.producer_of(name)
    if node is None:
        return None
    if node.op_type == "Mul":
        return node if node.input[0] == node.input[1] else None
    if node.op_type == "Pow":
        exponent = context.small_constant(scope, node.input[1])
        return node if exponent is not None and bool(np.all(exponent == _SQUARE)) else None
    return None


def _follow(context: RuleContext, scope: Scope, node: NodeProto) -> Iterator[NodeProto]:
    """Yield what leads from the mean of squares to the division, that division included."""
    for reader in walk_readers(scope, node, _carries_on, max_steps=_MAX_STEPS):
        if reader.node.op_type in _ON_THE_WAY | _PRODUCTS:
            yield reader.node
        if reader.node.op_type == "Sub":  # E[x^2] - E[x]^2
            for name in reader.node.input:
                square = _find_square(context, reader.scope, name)
                if square is not None:
                    yield square
                    yield from _find_mean(reader.scope, square.input[0])


def _find_mean(scope: Scope, name: str) -> list[NodeProto]:
    """Return what computes ``name`` as a mean, from the sum on; empty when it is none.

    Rounded before it is squared, a mean shifts E[x^2] - E[x]^2 by more than the variance itself.
    """
    passed: list[NodeProto] = []
    for _ in range(_MAX_STEPS):
        node = scope.producer_of(name)
        if node is None:
            return []
        passed.append(node)
        if node.op_type in _SUMS:
            return passed
        data = [n for n in node.input if n and not _is_count(scope, n)]
        if node.op_type not in _PRODUCTS | MOVERS or len(data) != 1:
            return []
        name = data[0]
    return []


def _carries_on(reader: Reader) -> bool:
    """True for nodes whose result is still the variance; a product with data ends the pattern."""
    node = reader.node
    if node.op_type in _PRODUCTS:
        return all(name == reader.name or _is_count(reader.scope, name) for name in node.input)
    return node.op_type in _ON_THE_WAY | MOVERS


def _is_count(scope: Scope, name: str) -> bool:
    """True for constants and for numbers that were integers, such as a dimension."""
    if scope.constant_of(name) is not None:
        return True
    producer = scope.producer_of(name)
    return (
        producer is not None
        and producer.op_type == "Cast"
        and scope.type_of(producer.input[0]) in (DType.INT64, DType.INT32)
    )
