"""Amax of least expected squared quantization error."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from onnx import helper

from trtdeploy.calibration.density import Floats, MagnitudeDensity
from trtdeploy.calibration.histogram import MagnitudeHistogram
from trtdeploy.core.number_formats import INT8, QuantizedType

_CANDIDATES_AT_ONCE = 128
"""With 128 levels each: 16384 limits, a few MiB of temporaries."""


def find_least_squared_error(histogram: MagnitudeHistogram, kind: QuantizedType) -> float:
    """Return the amax T that makes the sum of (x - q(x))^2 least.

    ``q`` rounds to the nearest of the magnitudes that ``kind`` stores, scaled by T / max, and
    saturates. The values count as spread evenly within their bins, so all sums are differences of
    partial moments: over the values that round to g, ``M2 - 2 g M1 + g^2 M0``. Candidates are the
    largest magnitude and every bin edge below it, in steps of 0.4 to 0.8 %, except those at which
    clipping alone costs more than all of the largest does.

    The levels of FP8 lie as dense, relative to their size, at every magnitude; so there clipping
    gains next to nothing, and the result is close to the largest.

    Args:
        histogram: At least one of its values is not zero.
        kind: The 8-bit type.

    Returns:
        Above 0, at most the largest magnitude.
    """
    density = MagnitudeDensity(histogram)
    levels = list_levels(kind) / kind.max
    at_largest = measure_errors(density, np.array([density.largest]), levels)[0]
    edges = density.edges[1:]
    edges = edges[edges < density.largest]
    hopeful = edges[measure_clipping(density, edges) < at_largest]
    candidates = np.append(hopeful, density.largest)
    errors = np.concatenate(
        [
            measure_errors(density, candidates[start : start + _CANDIDATES_AT_ONCE], levels)
            for start in range(0, candidates.size, _CANDIDATES_AT_ONCE)
        ]
    )
    best = errors.size - 1 - int(np.argmin(errors[::-1]))
    return float(candidates[best])


@lru_cache
def list_levels(kind: QuantizedType) -> Floats:
    """Return the magnitudes that ``kind`` stores, ascending from 0 to its max."""
    if kind == INT8:
        return np.arange(kind.max + 1)
    codes = np.arange(128, dtype=np.uint8)
    stored = codes.view(helper.tensor_dtype_to_np_dtype(kind.dtype.code)).astype(np.float64)
    return stored[stored <= kind.max]


def measure_errors(density: MagnitudeDensity, amax: Floats, levels: Floats) -> Floats:
    """Return the sum of squared errors for each amax.

    Args:
        density: What is quantized.
        amax: Those to compare, [T].
        levels: Magnitudes that are stored, relative to amax, ascending from 0 to 1: [L].
    """
    halfway = np.concatenate(([0.0], (levels[:-1] + levels[1:]) / 2, [np.inf]))
    below = density.measure_moments(amax[:, None] * halfway)
    values = amax[:, None] * levels
    zeroth, first, second = map(np.diff, (below.zeroth, below.first, below.second))
    errors: Floats = (second - 2 * values * first + values * values * zeroth).sum(axis=1)
    return errors


def measure_clipping(density: MagnitudeDensity, amax: Floats) -> Floats:
    """Return the part of those errors that is made above each amax: [T]."""
    below, total = density.measure_moments(amax), density.total
    zeroth, first, second = (
        total.zeroth - below.zeroth, total.first - below.first, total.second - below.second
    )  # fmt: skip
    errors: Floats = second - 2 * amax * first + amax * amax * zeroth
    return errors
