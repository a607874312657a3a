"""RemoveRedundantCastsPass: Casts that change nothing disappear."""

from __future__ import annotations

from collections import Counter

from onnx import NodeProto

from trtdeploy.core.dtypes import DType
from trtdeploy.graph.index import ModelIndex, Scope, build_index
from trtdeploy.graph.model import ONNX_DOMAINS, OnnxModel

_EXACT_IN = {
    DType.FLOAT16: frozenset({DType.FLOAT32, DType.FLOAT64}),
    DType.BFLOAT16: frozenset({DType.FLOAT32, DType.FLOAT64}),
    DType.FLOAT32: frozenset({DType.FLOAT64}),
}
"""Types that hold every value of a type, so that a Cast there and back is no change."""


class RemoveRedundantCastsPass:
    """Remove ``y = Cast(x, to=T)`` where ``x`` has type T already, or was widened from T.

    Before: ``Cast(to=FLOAT16)`` of a FLOAT16 value, as autocast exports leave behind once their
    surroundings became FLOAT16, or ``Cast(to=FLOAT16)`` of ``Cast(to=FLOAT)`` of a FLOAT16 value.
    After: readers of ``y`` read the FLOAT16 value itself. Casts that produce a graph output stay,
    because the output's name belongs to the user.
    Ensures: no Cast without effect, and no Cast that nobody reads.
    """

    def __call__(self, model: OnnxModel) -> None:
        """Rewrite ``model`` in place."""
        index = build_index(model)
        for scope, node in index.nodes():
            if not _is_cast(node) or node.output[0] in scope.outputs:
                continue
            source = _find_same_value(scope, node)
            owner = scope.resolve(source)
            if owner is None or source == node.output[0]:
                continue
            readers = scope.uses.pop(node.output[0], [])
            for use in readers:
                use.node.input[use.slot] = source
            owner.uses[source].extend(readers)  # the next Cast of a chain must find them
        _remove_unread_casts(index)


def _find_same_value(scope: Scope, cast: NodeProto) -> str:
    """Return an earlier name of exactly the value ``cast`` computes, or its own."""
    source, target = cast.input[0], _target_of(cast)
    if scope.type_of(source) is target:
        return source
    before = scope.producer_of(source)
    if before is not None and _is_cast(before):
        widened = scope.type_of(source) in _EXACT_IN.get(target, frozenset())
        if widened and scope.type_of(before.input[0]) is target:
            return before.input[0]
    return cast.output[0]


def _remove_unread_casts(index: ModelIndex) -> None:
    reads = Counter(name for _, node in index.nodes() for name in node.input)
    for scope in index.scopes:
        reads.update(scope.outputs)
    # innermost first: rebuilding a graph copies its nodes, bodies included
    for scope in reversed(index.scopes):
        kept: list[NodeProto] = []
        for node in reversed(scope.nodes):
            if _is_cast(node) and not reads[node.output[0]]:
                reads[node.input[0]] -= 1
            else:
                kept.append(node)
        if len(kept) != len(scope.nodes):
            del scope.graph.node[:]
            scope.graph.node.extend(reversed(kept))


def _is_cast(node: NodeProto) -> bool:
    return node.op_type == "Cast" and node.domain in ONNX_DOMAINS


def _target_of(node: NodeProto) -> DType:
    return next((DType.from_onnx(a.i) for a in node.attribute if a.name == "to"), DType.UNDEFINED)
