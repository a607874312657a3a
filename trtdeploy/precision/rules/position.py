"""KeepPositionRule: angles made of positions."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import NodeProto

from trtdeploy.graph.index import Scope
from trtdeploy.precision.context import RuleContext
from trtdeploy.precision.rules.rule import Kept

_TRIGONOMETRY = frozenset({"Sin", "Cos", "Tan"})
_ON_THE_WAY = frozenset(
    {"Mul", "Add", "Sub", "Div", "Concat", "Unsqueeze", "Squeeze", "Reshape", "Transpose",
     "Expand", "Cast", "MatMul", "Einsum", "Identity", "Slice", "Gather", "Tile"}
)  # fmt: skip
_MAX_STEPS = 12


class KeepPositionRule:
    """Keep sines and cosines, and the arithmetic that makes their angles out of integers.

    Rotary and sinusoidal embeddings multiply positions by frequencies; in FP16 a position of
    3000 is rounded to a multiple of 2, which is two radians of error.
    """

    def find(self, context: RuleContext) -> Iterator[Kept]:
        """Yield trigonometric nodes and their angle arithmetic."""
        for scope, node in context.index.nodes():
            if node.op_type not in _TRIGONOMETRY:
                continue
            yield node.name, f"{node.op_type} of an angle needs the angle's full precision"
            for source in _angle_nodes(scope, node):
                yield source.name, f"it computes the angle of {node.name!r}"


def _angle_nodes(scope: Scope, node: NodeProto) -> list[NodeProto]:
    """Return the nodes behind an angle; empty when it does not start from integers or constants."""
    found: dict[str, NodeProto] = {}
    pending = [(node.input[0], 0)]
    while pending:
        name, steps = pending.pop()
        source = scope.producer_of(name)
        if source is None or source.name in found:
            continue
        if source.op_type not in _ON_THE_WAY or steps > _MAX_STEPS:
            return []
        found[source.name] = source
        if source.op_type != "Cast":  # integers themselves are exact
            pending.extend((operand, steps + 1) for operand in source.input if operand)
    return list(found.values())
