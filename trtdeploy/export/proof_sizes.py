"""Sizes at which a file is proven: none of them the example's, no two symbols alike."""

from __future__ import annotations

from collections.abc import Mapping

from trtdeploy.core.errors import UsageError
from trtdeploy.core.tensors import SizeRule

BATCH = "batch"
_BATCHES = (1, 3)


def choose_proof_points(
    example: Mapping[str, int],
    rules: Mapping[str, SizeRule],
    stated: Mapping[str, tuple[int, ...]],
    batches: frozenset[str] = frozenset({BATCH}),
) -> list[dict[str, int]]:
    """Return at least two points, each with a size for every symbol; one when nothing varies.

    Args:
        example: The size of every symbol in the example of the export.
        rules: What sizes a symbol accepts.
        stated: Sizes by symbol that the user wants; point by point, the last one repeated.
        batches: Symbols that are a batch: they are tried at 1 and 3.

    Raises:
        UsageError: A stated symbol does not exist, or a size breaks its rule.
    """
    _check_stated(example, rules, stated)
    if not example:
        return [{}]
    count = max(2, *(len(sizes) for sizes in stated.values()), 2)
    points: list[dict[str, int]] = [{} for _ in range(count)]
    for symbol, size in example.items():
        rule = rules.get(symbol, SizeRule(symbol))
        given = stated.get(symbol) or (
            _BATCHES if symbol in batches else choose_two_sizes(size, rule, len(points[0]))
        )
        for index, point in enumerate(points):
            point[symbol] = given[min(index, len(given) - 1)]
    return points


def choose_two_sizes(size: int, rule: SizeRule, shift: int = 0) -> tuple[int, int]:
    """Return an accepted size below and one above the example's, as far as there are any.

    Args:
        size: The example's.
        rule: What is accepted.
        shift: Moves both up by so many steps, to tell symbols apart.
    """
    step = rule.multiple_of
    lower = rule.nearest(max(size * 5 // 8, 1) + shift * step)
    upper = rule.nearest(size + (1 + shift) * step)
    if lower == size:
        lower = rule.nearest(max(size - step, 1))
    if upper == size:
        upper = rule.nearest(max(size - 2 * step, 1))
    return lower, upper


def _check_stated(
    example: Mapping[str, int],
    rules: Mapping[str, SizeRule],
    stated: Mapping[str, tuple[int, ...]],
) -> None:
    for symbol, sizes in stated.items():
        if symbol not in example:
            raise UsageError(
                f"--prove-at {symbol}: no such dynamic size",
                hint=f"There are: {', '.join(example) or 'none'}.",
            )
        rule = rules.get(symbol, SizeRule(symbol))
        wrong = [size for size in sizes if not rule.accepts(size)]
        if wrong:
            raise UsageError(f"--prove-at {symbol}={wrong[0]}: the model takes {rule}")
