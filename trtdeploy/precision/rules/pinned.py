"""KeepPinnedRule: what the user asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from trtdeploy.core.errors import UsageError
from trtdeploy.core.names import suggest_name
from trtdeploy.precision.context import RuleContext
from trtdeploy.precision.rules.rule import Kept


class KeepPinnedRule:
    """Keep nodes whose name or operator matches a pattern of the user.

    A pattern is a node name with ``*``, ``?`` and ``[...]`` as wildcards, or ``op:Softmax``.
    An exact name always matches itself, brackets included.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        self.patterns = tuple(patterns)

    def find(self, context: RuleContext) -> Iterator[Kept]:
        """Yield pinned nodes.

        Raises:
            UsageError: A pattern matches no node: a typo would silently lose its effect.
        """
        nodes = [(node.name, node.op_type) for _, node in context.index.nodes()]
        for pattern in self.patterns:
            matched = [name for name, op in nodes if _matches(pattern, name, op)]
            if not matched:
                by_op = pattern.startswith("op:")
                raise UsageError(
                    f"the pin {pattern!r} matches no node of the model",
                    hint=suggest_name(pattern, (f"op:{o}" if by_op else n for n, o in nodes)),
                )
            for name in matched:
                yield name, f"pinned to FP32 by {pattern!r}"


def _matches(pattern: str, name: str, op_type: str) -> bool:
    if pattern.startswith("op:"):
        return fnmatchcase(op_type, pattern[3:])
    return name == pattern or fnmatchcase(name, pattern)
