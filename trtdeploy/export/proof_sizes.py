"""Sizes at which a file is proven: none of them the example's, no two symbols alike."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from trtdeploy.core.errors import UsageError
from trtdeploy.core.tensors import SizeRule

_BATCHES = (1, 3)


def choose_proof_points(
    example: Mapping[str, int],
    rules: Mapping[str, SizeRule],
    stated: Mapping[str, tuple[int, ...]],
    batches: frozenset[str] = frozenset({"batch"}),
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
    check_stated_sizes(example, rules, stated)
    if not example:
        return [{}]
    count = max(2, *(len(sizes) for sizes in stated.values()), 2)
    points: list[dict[str, int]] = [{} for _ in range(count)]
    ordered = sorted(example, key=lambda s: (s not in stated, s not in batches))
    for symbol in ordered:
        rule = rules.get(symbol, SizeRule(symbol))
        given = stated.get(symbol) or (
            tuple(map(rule.nearest, _BATCHES))
            if symbol in batches
            else _choose_two_sizes(example[symbol], rule, len(points[0]))
        )
        for index, point in enumerate(points):
            size = given[min(index, len(given) - 1)]
            is_free = symbol not in stated and symbol not in batches
            point[symbol] = _move_apart(size, rule, point.values()) if is_free else size
    return [{symbol: point[symbol] for symbol in example} for point in points]


def _move_apart(size: int, rule: SizeRule, taken: Collection[int]) -> int:
    """Return the accepted size closest to one that no other symbol has, the larger if there is."""
    steps = range(1, len(taken) + 1)
    near = [size, *(size + rule.multiple_of * n for n in steps)]
    near += [size - rule.multiple_of * n for n in steps]
    return next((n for n in near if n > 0 and rule.accepts(n) and n not in taken), size)


def format_sizes(sizes: Mapping[str, int]) -> str:
    """Return ``batch=2, height=64``."""
    return ", ".join(f"{symbol}={size}" for symbol, size in sizes.items()) or "its fixed sizes"


def _choose_two_sizes(size: int, rule: SizeRule, shift: int) -> tuple[int, int]:
    """Return an accepted size below and one above the example's, as far as there are any.

    Both are moved up by ``shift`` steps, to tell symbols apart.
    """
    step = rule.multiple_of
    lower = rule.nearest(max(size * 5 // 8, 1) + shift * step)
    upper = rule.nearest(size + (1 + shift) * step)
    if lower == size:
        lower = rule.nearest(max(size - step, 1))
    if upper == size:
        upper = rule.nearest(max(size - 2 * step, 1))
    return lower, upper


def check_stated_sizes(
    symbols: Collection[str],
    rules: Mapping[str, SizeRule],
    stated: Mapping[str, tuple[int, ...]],
) -> None:
    """Refuse sizes to prove a file at that it does not have or does not take.

    Raises:
        UsageError: A stated symbol does not exist, or a size breaks its rule.
    """
    for symbol, sizes in stated.items():
        if symbol not in symbols:
            raise UsageError(
                f"--prove-at {symbol}: no such dynamic size",
                hint=f"There are: {', '.join(symbols) or 'none'}.",
            )
        rule = rules.get(symbol, SizeRule(symbol))
        wrong = [size for size in sizes if not rule.accepts(size)]
        if wrong:
            raise UsageError(f"--prove-at {symbol}={wrong[0]}: the model takes {rule}")
