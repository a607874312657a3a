"""KeepTinyConstantRule: constants that the narrow type would flush or blur."""

from __future__ import annotations

from collections.abc import Iterator

from trtdeploy.precision.context import RuleContext
from trtdeploy.precision.neighbours import MOVERS
from trtdeploy.precision.operators import Q_DQ_OPERATORS
from trtdeploy.precision.rules.readers import Reader, walk_readers
from trtdeploy.precision.rules.rule import Kept

_SENSITIVE = frozenset({"Div", "Sqrt", "Reciprocal", "Log", "Pow", "Mul"})
_ON_THE_WAY = MOVERS | {"Sqrt", "Reciprocal", "Pow"}


class KeepTinyConstantRule:
    """Keep nodes that read a constant whose largest value is below the smallest normal number.

    An epsilon of 1e-12 is 0 in FP16 (smallest positive value 6e-8) and the division it protects
    becomes 0/0, so the nodes that divide by, multiply with, or take the root or logarithm of,
    the result are kept with it, through reshapes and the like.
    """

    def find(self, context: RuleContext) -> Iterator[Kept]:
        """Yield readers of tiny constants and what depends on their smallness."""
        limit = context.limits.smallest_normal
        seen: set[str] = set()
        for scope, node in context.index.nodes():
            if node.op_type in Q_DQ_OPERATORS:
                continue  # a small scale makes no small results, and has a rule of its own
            for _, name in context.float_inputs(scope, node):
                tensor = scope.constant_of(name)
                if tensor is None:
                    continue
                amax = context.measure(tensor).amax
                if not 0 < amax < limit:
                    continue
                reason = (
                    f"its constant {name!r} is at most {amax:.3g}, "
                    f"below the smallest normal {context.low.label} {limit:.3g}"
                )
                yield node.name, reason
                for reader in walk_readers(scope, node, _carries_on, seen=seen):
                    if reader.node.op_type in _SENSITIVE:
                        yield reader.node.name, f"it depends on the tiny constant {name!r}"


def _carries_on(reader: Reader) -> bool:
    """True when the result is tiny, or the reciprocal of something tiny, as the operand was."""
    node = reader.node
    if node.op_type == "Div":  # 1 / x is as large as x is small; d / x is of ordinary size
        return node.input[1] == reader.name and reader.scope.constant_of(node.input[0]) is not None
    return node.op_type in _ON_THE_WAY
