"""Which optimization profile of an engine takes these sizes?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from trtdeploy.core.errors import FeedError
from trtdeploy.core.ranges import OptimizationProfile, ShapeRange
from trtdeploy.core.tensors import format_shape

Sizes = Mapping[str, tuple[int, ...]]

_MOST_REMEMBERED = 256


class ProfileChoice:
    """Chooses by sizes alone, so the same sizes always run with the same kernels.

    Of several optimization profiles that fit, the one whose largest sizes are smallest is taken:
    it is the most special one. The first of equals wins.

    Args:
        profiles: As the engine numbers them.
    """

    def __init__(self, profiles: Sequence[OptimizationProfile]) -> None:
        self._profiles = tuple(profiles)
        order = sorted(range(len(profiles)), key=lambda index: _measure(profiles[index]))
        self._order = tuple(order)
        self._remembered: dict[tuple[tuple[int, ...], ...], int] = {}

    def choose(self, shapes: Sizes, values: Sizes) -> int:
        """Return the number of an optimization profile.

        Args:
            shapes: Sizes of every input; ranks are right already.
            values: Contents of every shape tensor, flattened.

        Raises:
            FeedError: None fits: what each of them takes, and what was given.
        """
        key = (*shapes.values(), *values.values())
        index = self._remembered.get(key)
        if index is None:
            index = self._search(shapes, values)
            if len(self._remembered) >= _MOST_REMEMBERED:
                self._remembered.clear()
            self._remembered[key] = index
        return index

    def _search(self, shapes: Sizes, values: Sizes) -> int:
        for index in self._order:
            if not any(True for _ in _find_misfits(self._profiles[index], shapes, values)):
                return index
        reasons = []
        for index, profile in enumerate(self._profiles):
            first = ", ".join(_find_misfits(profile, shapes, values))
            reasons.append(f"optimization profile {index} ({profile.name}): {first}")
        raise FeedError(
            "no optimization profile of the engine takes these sizes. " + "; ".join(reasons),
            hint="Feed sizes inside the range, or build again with a wider one (--shape, --value).",
        )


def _measure(profile: OptimizationProfile) -> int:
    return sum(math.prod(shape.max) for shape in profile.shapes.values())


def _find_misfits(profile: OptimizationProfile, shapes: Sizes, values: Sizes) -> Iterator[str]:
    for name, shape in shapes.items():
        allowed = profile.shapes[name]
        for axis, (low, size, high) in enumerate(zip(allowed.min, shape, allowed.max, strict=True)):
            if not low <= size <= high:
                yield (
                    f"{name!r} has {size} on axis {axis} ({format_shape(shape)}), and it takes "
                    f"{_format_range(low, high)} ({_format_shapes(allowed)})"
                )
    for name, given in values.items():
        bounds = profile.values.get(name)
        if bounds is None:
            continue
        for position, (low, value, high) in enumerate(
            zip(bounds.min, given, bounds.max, strict=True)
        ):
            if not low <= value <= high:
                yield (
                    f"value {position} of {name!r} is {value}, and it takes "
                    f"{_format_range(low, high)}"
                )


def _format_range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"


def _format_shapes(allowed: ShapeRange) -> str:
    return f"{format_shape(allowed.min)} to {format_shape(allowed.max)}"
