"""Conditions on sizes that an exported graph relies on, turned into rules for symbols.

PyTorch states them as Python texts over ``L['x'].size()[2]``. They are read, never executed: an
exported program is a file from somewhere.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import lcm
from typing import Any

from trtdeploy.core.tensors import SizeRule

_BINARY: Mapping[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip
_COMPARE: Mapping[type[ast.AST], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "max": max, "min": min, "sym_max": max, "sym_min": min, "sym_int": int, "int": int,
}  # fmt: skip
STEPS = (1, 2, 4, 7, 8, 14, 16, 28, 32, 64, 128)
"""Steps that are tried: powers of two (strided stages), and patches of 14 (DINOv2)."""
_LONGEST_GUARD = 4000
_FAR = 1 << 20
"""Conditions that hold up to here set no limit."""

Lookup = Callable[[str, int], int]
"""Returns the size of an axis, by the input's path as in ``L['x'][0]`` -> ``x.0``."""


class UnreadableGuardError(ValueError):
    """A condition uses something beyond sizes, arithmetic and comparisons."""


def evaluate_guard(text: str, lookup: Lookup) -> Any:
    """Return what a condition says for given sizes.

    Raises:
        UnreadableGuardError: It cannot be read.
    """
    try:
        return _evaluate(ast.parse(text[:_LONGEST_GUARD], mode="eval").body, lookup)
    except (SyntaxError, RecursionError, ZeroDivisionError, KeyError, TypeError) as error:
        raise UnreadableGuardError(text) from error


def _evaluate(node: ast.expr, lookup: Lookup) -> Any:
    match node:
        case ast.Constant(value=int(value)):
            result: Any = value
        case ast.BinOp(op=op) if type(op) in _BINARY:
            operands = _evaluate(node.left, lookup), _evaluate(node.right, lookup)
            result = _BINARY[type(op)](*operands)
        case ast.UnaryOp(op=ast.USub()):
            result = -_evaluate(node.operand, lookup)
        case ast.Compare(ops=ops) if all(type(op) in _COMPARE for op in ops):
            values = [_evaluate(entry, lookup) for entry in (node.left, *node.comparators)]
            pairs = zip(ops, values, values[1:], strict=False)
            result = all(_COMPARE[type(op)](left, right) for op, left, right in pairs)
        case ast.BoolOp(op=op):
            values = [_evaluate(entry, lookup) for entry in node.values]
            result = all(values) if isinstance(op, ast.And) else any(values)
        case ast.Subscript():
            result = _read_size(node, lookup)
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)) if name in _FUNCTIONS:
            result = _FUNCTIONS[name](*(_evaluate(entry, lookup) for entry in node.args))
        case _:
            raise UnreadableGuardError(ast.unparse(node))
    return result


def _read_size(node: ast.Subscript, lookup: Lookup) -> int:
    """Read ``L['x'][0].size()[2]``."""
    call, index = node.value, node.slice
    if (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "size"
        and isinstance(index, ast.Constant)
        and isinstance(index.value, int)
    ):
        return lookup(".".join(_read_path(call.func.value)), index.value)
    raise UnreadableGuardError(ast.unparse(node))


def _read_path(node: ast.expr) -> list[str]:
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return [*_read_path(node.value), str(node.slice.value)]
    if isinstance(node, ast.Name) and node.id == "L":
        return []
    raise UnreadableGuardError(ast.unparse(node))


def _is_about_ones(text: str) -> bool:
    """Tell whether a condition only excludes sizes of 1, as PyTorch does everywhere.

    Broadcasting makes a size of 1 special there, whether the model's own code does so or not. The
    file is run at its smallest sizes instead.
    """
    compact = text.replace(" ", "")
    return compact.endswith(("!=1", ">=2", ">1")) or (compact.startswith(("1!=", "2<=", "1<")))


def _tighten_rule(
    rule: SizeRule, size: int, guards: Iterable[str], lookup_at: Callable[[int], Lookup]
) -> SizeRule:
    """Return the rule with the step and limits that the conditions demand.

    All conditions hold at the example's size; ``lookup_at`` gives the sizes of all axes when the
    symbol has another one.
    """
    readable = [text for text in guards if not (_is_about_ones(text) or _is_exclusion(text))]
    texts = [text for text in readable if _holds(text, lookup_at(size)) is True]

    def holds_at(other: int) -> bool:
        return all(_holds(text, lookup_at(other)) is not False for text in texts)

    step = rule.multiple_of
    for candidate in STEPS:
        wider = lcm(step, candidate)
        beside = (size + wider, size - wider) if size % wider == 0 else ()
        if any(other > 0 and holds_at(other) for other in beside):
            step = wider
            break
    lowest = max(rule.min, _search_end(size, step, holds_at, up=False))
    highest = _search_end(size, step, holds_at, up=True)
    limits = [limit for limit in (rule.max, highest if highest < _FAR - step else None) if limit]
    return replace(rule, multiple_of=step, min=lowest, max=min(limits, default=None))


def _is_exclusion(text: str) -> bool:
    """Tell whether a condition excludes single sizes; that is no limit of all others."""
    try:
        node = ast.parse(text[:_LONGEST_GUARD], mode="eval").body
    except (SyntaxError, RecursionError):
        return False
    return isinstance(node, ast.Compare) and all(isinstance(op, ast.NotEq) for op in node.ops)


def _holds(text: str, lookup: Lookup) -> bool | None:
    try:
        return bool(evaluate_guard(text, lookup))
    except UnreadableGuardError:
        return None


def _search_end(size: int, step: int, holds_at: Callable[[int], bool], *, up: bool) -> int:
    """Return the last size, counted in steps from the example, up to which conditions hold."""
    bound = (_FAR - size) // step if up else (size - 1) // step
    sign = step if up else -step
    good, bad = 0, max(bound, 0) + 1
    if holds_at(size + sign * (bad - 1)):
        return size + sign * (bad - 1)
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if holds_at(size + sign * middle) else (good, middle)
    return size + sign * good


def tighten_rules(
    rules: Mapping[str, SizeRule],
    guards: Sequence[str],
    sizes: Mapping[str, int],
    shapes_at: Callable[[Mapping[str, int]], Mapping[str, tuple[int, ...]]],
) -> dict[str, SizeRule]:
    """Return all rules with what the conditions demand, one symbol varied at a time.

    Args:
        rules: What the model itself was seen to accept, by symbol.
        guards: Conditions over ``L['tensors'][position]`` or ``L['input']``.
        sizes: The example's, by symbol.
        shapes_at: Shape of every input for given sizes, in order.
    """

    def lookup_for(symbol: str) -> Callable[[int], Lookup]:
        def lookup_at(size: int) -> Lookup:
            shapes = shapes_at({**sizes, symbol: size})
            flat = {f"tensors.{index}": shape for index, shape in enumerate(shapes.values())}
            return lambda path, axis: {**shapes, **flat}[path][axis]

        return lookup_at

    return {
        symbol: _tighten_rule(rule, sizes[symbol], guards, lookup_for(symbol))
        for symbol, rule in rules.items()
    }
