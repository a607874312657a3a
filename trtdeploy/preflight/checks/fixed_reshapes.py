"""FindFixedReshapesCheck: Reshapes that fix, or mix, what the inputs declare as free."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from trtdeploy.config.batch_layout import find_batch
from trtdeploy.graph.attributes import integer_of
from trtdeploy.graph.shape_inference import Dims
from trtdeploy.preflight.context import CheckContext, input_name
from trtdeploy.preflight.finding import Affects, Finding, FindingKind, Severity
from trtdeploy.preflight.prepared_model import CheckedNode
from trtdeploy.preflight.symbols import (
    SymbolAxes,
    find_symbol_axes,
    name_symbol,
    read_profile_sizes,
)
from trtdeploy.preflight.text import format_dims

FIXED_INSIDE = FindingKind("fixed-inside", Severity.BLOCKER, Affects.BOTH)
MIXED_SAMPLES = FindingKind("mixed-samples", Severity.HAZARD, Affects.BOTH)

_TARGET = 1
"""Input slot of a Reshape that holds the wanted sizes."""

EXPORT_DYNAMIC = (
    "Export again with this axis dynamic and without sizes taken from the example input "
    "(PyTorch: x.flatten(1), or x.reshape(x.shape[0], -1))."
)


@dataclass(frozen=True)
class _FixedReshape:
    """A Reshape with a constant target whose input has symbolic sizes."""

    checked: CheckedNode
    before: Dims
    target: tuple[int, ...]
    free: tuple[str, ...]
    """Symbols of the input that the target does not copy."""


class FindFixedReshapesCheck:
    """Find Reshapes to constant sizes behind a symbolic axis.

    ``Reshape([batch, 6, 6, 6] -> [1, 216])`` runs for batch 1 only (``fixed-inside``);
    ``Reshape([batch, 6, 6, 6] -> [1, 6, -1])`` runs for any batch and lets samples of one batch
    flow into each other (``mixed-samples``).
    """

    def find(self, context: CheckContext) -> Iterator[Finding]:
        """Yield one finding per Reshape."""
        axes = find_symbol_axes(context.prepared.model.input_specs())
        if not axes:
            return
        batches = find_batch(context.prepared.model.input_specs()).symbols
        for checked in context.standard_nodes():
            reshape = _read_reshape(context, checked, axes)
            if reshape is None:
                continue
            if -1 not in reshape.target:
                yield from _report_fixed(context, reshape, axes)
            elif reshape.before[0] in batches and reshape.target[0] > 0:
                yield MIXED_SAMPLES.at(
                    checked.place,
                    f"reshapes {format_dims(reshape.before)} to {list(reshape.target)}: the batch "
                    f"axis {name_symbol(str(reshape.before[0]), axes)} ends up in the axis marked "
                    "-1, so samples of one batch may be mixed",
                    "Compare the results of a batch with those of its samples one by one. "
                    + EXPORT_DYNAMIC,
                )


def _read_reshape(
    context: CheckContext, checked: CheckedNode, axes: SymbolAxes
) -> _FixedReshape | None:
    if checked.node.op_type != "Reshape":
        return None
    before = context.symbolic.shape_of(checked.node.input[0])
    values = context.constant_of(checked.scope, input_name(checked.node, _TARGET))
    if not before or values is None or values.ndim != 1 or values.dtype.kind != "i":
        return None
    target = tuple(int(value) for value in values)
    copied = Counter(_copied_dims(checked, before, target))
    free = Counter(str(dim) for dim in before if not isinstance(dim, int)) - copied
    if not free or any(dim not in axes for dim in free):
        return None  # all sizes known, or one that the user did not declare
    return _FixedReshape(checked, before, target, tuple(free.elements()))


def _copied_dims(checked: CheckedNode, before: Dims, target: tuple[int, ...]) -> Iterator[str]:
    """Yield the symbols that a 0 in the target takes over from the input."""
    if integer_of(checked.node, "allowzero", 0):
        return
    for axis, size in enumerate(target[: len(before)]):
        dim = before[axis]
        if size == 0 and isinstance(dim, str):
            yield dim


def _report_fixed(
    context: CheckContext, reshape: _FixedReshape, axes: SymbolAxes
) -> Iterator[Finding]:
    wanted = _required_product(reshape)
    names = " times ".join(name_symbol(symbol, axes) for symbol in reshape.free)
    sizes = _profile_products(context, reshape.free)
    fits = bool(sizes) and sizes == {wanted}
    works = f"it works only when {names} is {wanted}" if wanted else "it works for no size at all"
    yield FIXED_INSIDE.at(
        reshape.checked.place,
        f"declared dynamic but fixed inside: reshapes {format_dims(reshape.before)} to "
        f"{list(reshape.target)}, so {works}"
        + ("; the optimization profiles ask for nothing else" if fits else ""),
        EXPORT_DYNAMIC,
        severity=Severity.HAZARD if fits else None,
    )


def _required_product(reshape: _FixedReshape) -> int:
    """Return what the free symbols must multiply to; 0 when no size fits."""
    fixed = math.prod(dim for dim in reshape.before if isinstance(dim, int))
    for axis, size in enumerate(reshape.target[: len(reshape.before)]):
        copied = reshape.before[axis]
        if size == 0 and isinstance(copied, int) and copied:
            fixed //= copied
    total = math.prod(size for size in reshape.target if size > 0)
    return total // fixed if fixed and total % fixed == 0 else 0


def _profile_products(context: CheckContext, symbols: tuple[str, ...]) -> set[int]:
    """Return the sizes the profiles give one symbol; for several symbols nothing is claimed."""
    return set(read_profile_sizes(context, symbols[0])) if len(symbols) == 1 else set()
