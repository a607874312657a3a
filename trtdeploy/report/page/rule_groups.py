"""Nodes grouped by the rule that decided about them, and by its reasons."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class ReasonGroup:
    """Nodes that one rule kept for one reason."""

    reason: str
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class RuleGroup:
    """All nodes of one rule; the reasons with most nodes come first."""

    rule: str
    count: int
    reasons: tuple[ReasonGroup, ...]


def group_by_rule(nodes: Iterable[tuple[str, str, str]]) -> tuple[RuleGroup, ...]:
    """Return the rules with most nodes first.

    Args:
        nodes: Name of a node, the rule that decided, and its reason.
    """
    rules: dict[str, dict[str, list[str]]] = {}
    for name, rule, reason in nodes:
        rules.setdefault(rule, {}).setdefault(reason, []).append(name)
    groups = [
        RuleGroup(
            rule,
            sum(map(len, reasons.values())),
            tuple(
                ReasonGroup(reason, tuple(names))
                for reason, names in sorted(reasons.items(), key=lambda item: -len(item[1]))
            ),
        )
        for rule, reasons in rules.items()
    ]
    return tuple(sorted(groups, key=lambda group: -group.count))
