"""Symbolic sizes: which axes of which inputs carry them, and what a profile makes of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from trtdeploy.core.ranges import POINTS
from trtdeploy.core.tensors import TensorSpec
from trtdeploy.preflight.context import CheckContext

SymbolAxes = dict[str, list[tuple[str, int]]]
"""Symbol to the (input, axis) pairs that carry it."""


def find_symbol_axes(specs: Iterable[TensorSpec]) -> SymbolAxes:
    """Return where each symbol of the inputs occurs."""
    axes: SymbolAxes = defaultdict(list)
    for spec in specs:
        for axis in spec.dynamic_axes:
            axes[str((spec.shape or ())[axis])].append((spec.name, axis))
    return dict(axes)


def read_profile_sizes(context: CheckContext, symbol: str) -> frozenset[int]:
    """Return every size the optimization profiles give a symbol; empty without profiles."""
    sizes = set()
    for name, axis in find_symbol_axes(context.prepared.model.input_specs()).get(symbol, []):
        for profile in context.optimization_profiles:
            shapes = profile.shapes.get(name)
            for point in POINTS if shapes is not None else ():
                dims = shapes.at(point) if shapes is not None else ()
                if axis < len(dims):
                    sizes.add(dims[axis])
    return frozenset(sizes)


def name_symbol(symbol: str, axes: SymbolAxes) -> str:
    """Return ``batch ('x' axis 0)``; an unnamed symbol is named by its places alone."""
    places = ", ".join(f"{name!r} axis {axis}" for name, axis in axes.get(symbol, [])[:3])
    if symbol.startswith("?"):
        return places or "an unnamed size"
    return f"{symbol} ({places})" if places else symbol
