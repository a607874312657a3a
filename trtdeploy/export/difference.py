"""How far two programs' outputs are apart, and how much of that FP32 rounding explains.

A difference is held against the largest magnitude *around* it, so that no large value elsewhere in
the output hides it:

    error = |found - expected| / scale
    scale = the smallest, over the axes, of the largest |expected| with the same index on that axis

A channel of scores is so measured as scores, beside channels of boxes in pixels, wherever the
channels are. Values that mask others (-1e9) are measured by themselves. Where values cancel to
nearly nothing, rounding alone exceeds every share of them; there, other roundings of the same
model (FP64 is the best one) say how far is far:

    accepted: |found - expected| <= rtol scale, or
              |found - expected| <= 8 times half a unit in the last place of the largest, or
              |found - expected| <= 8 times the largest |other - expected| around it,
                                    but at most 100 rtol (and 25 %) of the largest |expected|

Integers, booleans, NaN and infinities cannot be near each other: they are equal, or the share of
them that is not is compared with the share that other roundings change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from trtdeploy.core.arrays import Array

_ROUNDING_MARGIN = 8
"""Two honest FP32 programs round in different orders: that many times the distance from FP64."""
_LEAST_ROUNDING = _ROUNDING_MARGIN * 2.0**-24
"""Times the largest: ONNX Runtime's sigmoid is so far off near 0, which no other rounding shows."""
_MOST_EXPLAINED, _MOST_EXPLAINED_SHARE = 100, 0.25
"""Times rtol, and of the largest: a model that rounding moves further proves nothing."""
_MOST_CHANGED = 0.5
"""Share of integers: were more of them changed by rounding, any file would do."""
_SMALLEST_SLICE = 16
"""Of fewer values, even the largest may be near 0 by chance."""
_MASK_OCTAVES, _EMPTY_OCTAVES, _SMALLEST_MASK = 2, 8, 2.0**10
"""Masks are nearly constant, far from all else, and large: -1e4, -1e9, the lowest of a type."""


@dataclass(frozen=True)
class Difference:
    """What came of comparing two arrays.

    Attributes:
        error: Largest difference relative to the largest magnitude around it; relative to the
            largest of all for those that rounding explains. Of values that cannot be near each
            other, the share that differs.
        equal: Whether all differences are within the tolerance or explained by rounding.
        worst: The worst place: ``0.5 instead of 0.25 at [0, 3]``; empty without differences.
    """

    error: float
    equal: bool
    worst: str = ""


@np.errstate(over="ignore", invalid="ignore")
def compare_arrays(
    expected: Array,
    found: Array,
    rtol: float,
    list_others: Callable[[], Sequence[Array]] = tuple,
) -> Difference:
    """Compare two arrays of the same shape; see the module for the formula.

    What the source computes when it rounds otherwise is listed only where the tolerance is
    exceeded.
    """
    difference, changed = _subtract(expected, found)
    share = _mean(changed)
    if not (share or difference.any()):
        return Difference(0.0, equal=True)
    scale, largest = _measure_scale(_to_magnitude(expected))
    error = difference / scale
    worst = _describe_worst(expected, found, np.where(changed, np.inf, error))
    explained: Array | float = _LEAST_ROUNDING * largest
    most_changed = 0.0
    near = difference <= rtol * scale
    if share or not (near | (difference <= explained)).all():
        moved, most_changed = _measure_others(expected, list_others())
        most = min(_MOST_EXPLAINED * rtol, _MOST_EXPLAINED_SHARE) * largest
        explained = np.maximum(explained, np.minimum(moved, most))
    rounded = difference <= explained
    equal = share <= most_changed and bool((near | rounded).all())
    error = np.where(rounded, difference / largest, error)
    return Difference(max(share, float(error.max(initial=0.0))), equal=equal, worst=worst)


def find_worst(compared: Iterable[tuple[str, Difference]]) -> tuple[str, Difference]:
    """Return the output that is furthest from what is expected; an empty name if none is off."""
    nothing = ("", Difference(0.0, equal=True))
    name, worst = max(compared, key=lambda p: (not p[1].equal, p[1].error), default=nothing)
    return (name if worst.worst else "", worst)


def _subtract(expected: Array, found: Array) -> tuple[Array, Array]:
    """Return how far numbers are apart, and which values are others without being near."""
    if expected.dtype.kind not in "fc":
        return np.zeros(expected.shape), np.asarray(expected != found)
    distance = np.abs(_widen(expected) - _widen(found))
    near = np.isfinite(expected) & np.isfinite(found)
    same = (expected == found) | (np.isnan(expected) & np.isnan(found))
    return np.where(near & ~same, distance, 0.0), ~(near | same)


def _widen(array: Array) -> Array:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _to_magnitude(array: Array) -> Array:
    if array.dtype.kind not in "fc":
        return np.zeros(array.shape)
    return np.where(np.isfinite(array), np.abs(_widen(array)), 0.0)


def _measure_scale(magnitude: Array) -> tuple[Array, float]:
    """Return the scale of each value, and that of all together; masks are left to themselves."""
    masks = magnitude >= _find_smallest_mask(magnitude)
    rest = np.where(masks, 0.0, magnitude)
    largest = float(rest.max(initial=0.0)) or 1.0
    nearby = _take_around(rest)
    return np.where(masks, magnitude, np.where(nearby > 0, nearby, largest)), largest


def _take_around(values: Array) -> Array:
    """Return the largest value of the slices through each value, of the axis where it is least."""
    around = np.full(values.shape, values.max(initial=0.0))
    for axis, size in enumerate(values.shape):
        if size > 1 and values.size // size >= _SMALLEST_SLICE:
            others = tuple(other for other in range(values.ndim) if other != axis)
            around = np.minimum(around, values.max(axis=others, keepdims=True))
    return around


def _find_smallest_mask(magnitude: Array) -> float:
    if not magnitude.max(initial=0.0) >= _SMALLEST_MASK:
        return np.inf
    octaves = np.unique(np.frexp(magnitude[magnitude > 0])[1])
    jumps = np.flatnonzero(np.diff(octaves) > _EMPTY_OCTAVES)
    if not jumps.size or octaves.size - 1 - jumps[-1] > _MASK_OCTAVES:
        return np.inf
    return max(float(np.ldexp(0.5, octaves[jumps[-1] + 1])), _SMALLEST_MASK)


def _measure_others(expected: Array, others: Sequence[Array]) -> tuple[Array, float]:
    """Return how far rounding may move each value, and the share of values it may change."""
    moved, share = np.zeros(expected.shape), 0.0
    masks = _to_magnitude(expected) >= _find_smallest_mask(_to_magnitude(expected))
    for other in others:
        difference, changed = _subtract(expected, other)
        moved, share = np.maximum(moved, difference), max(share, _mean(changed))
    around = np.where(masks, moved, _take_around(np.where(masks, 0.0, moved)))
    return _ROUNDING_MARGIN * around, min(_ROUNDING_MARGIN * share, _MOST_CHANGED)


def _mean(flags: Array) -> float:
    return float(flags.mean()) if flags.size else 0.0


def _describe_worst(expected: Array, found: Array, error: Array) -> str:
    if not error.size or not error.max() > 0:
        return ""
    place = np.unravel_index(int(error.argmax()), error.shape)
    where = ", ".join(str(int(index)) for index in place)
    return f"{found[place]!s} instead of {expected[place]!s} at [{where}]"
