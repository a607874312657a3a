"""Amax whose quantized distribution loses least information."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from trtdeploy.calibration.density import Floats, MagnitudeDensity
from trtdeploy.calibration.histogram import MagnitudeHistogram
from trtdeploy.calibration.squared_error import (
    list_levels,
    measure_clipping,
    measure_errors,
)
from trtdeploy.core.number_formats import INT8

LINEAR_BINS = 2048
LEVELS = 128
MOST_CLIPPING = 1 / 8
"""Error of clipping at an amax, relative to that of rounding without any; both are squared sums."""
_TIE = 1e-9
"""Divergences that differ by less, in nats, differ by rounding."""

Indices = npt.NDArray[np.int64]


def find_least_divergence(histogram: MagnitudeHistogram) -> float:
    """Return the amax of least Kullback-Leibler divergence for 8-bit integers.

    TensorRT's method: |x| in 2048 equal bins up to the largest. For each number ``i`` of bins from
    128, P is the first ``i`` bins with everything above added to the last one, and Q the same bins
    (without what lies above) merged into 128 levels, each level spread evenly over those of its
    bins that are not empty. Amax is ``i`` bins wide for the ``i`` of least KL(P || Q). The
    first bin counts as much as the second one, because the zeros of a ReLU say nothing about
    resolution.

    Source: S. Migacz, "8-bit Inference with TensorRT", GTC 2017; the treatment of the first bin,
    and ties going to the larger amax, are those of NVIDIA's pytorch-quantization
    (calib/histogram.py). One thing differs: clipping at amax may cost at most an eighth of
    what rounding costs without any. A layer averages rounding out, and not clipping, which always
    hits the same large values. Divergence does not see how large they are: of a GELU or SiLU, whose
    negative values pile up in a narrow range, it may keep that range alone; and of few or discrete
    values, the pile in its last bin.

    Args:
        histogram: At least one of its values is not zero.

    Returns:
        From 1/16 of the largest magnitude to that.
    """
    density = MagnitudeDensity(histogram)
    limits = density.largest * np.arange(LINEAR_BINS + 1) / LINEAR_BINS
    below = density.measure_mass(limits)
    mass = np.diff(below)
    mass[0] = mass[1]
    divergence = measure_divergences(mass)
    levels = list_levels(INT8) / INT8.max
    rounding = measure_errors(density, np.array([density.largest]), levels)[0]
    clipping = measure_clipping(density, limits[LEVELS:-1])
    divergence[:-1][clipping > MOST_CLIPPING * rounding] = np.inf
    best = int(np.flatnonzero(divergence <= divergence.min() + _TIE)[-1])
    return float(limits[LEVELS + best])


def measure_divergences(mass: Floats) -> Floats:
    """Return KL(P || Q) for every number of bins from 128 to all; infinity where Q misses mass.

    All sums over bins come from prefix sums, so a candidate costs its 128 levels only::

        KL = sum(p log p) - sum(p log q)
        sum over a level (p log q) = S log(S / n) - S log(sum of all S)

    with S the mass of a level and n the number of its bins that are not empty.

    Args:
        mass: Mass per bin, not negative; its sum is positive.
    """
    sizes, bounds = _list_candidates(mass.size)
    total = mass.sum()
    below = _accumulate(mass)
    level_mass = np.diff(below[bounds])
    height = np.diff(_accumulate(mass > 0)[bounds])
    np.divide(level_mass, height, out=height, where=height > 0)
    _replace_by_log(height)
    inside = below[sizes]
    outside = total - inside
    last = mass[sizes - 1] + outside
    p_log_p = _accumulate(_x_log_x(mass))[sizes - 1] + _x_log_x(last)
    p_log_q = np.einsum("ij,ij->i", level_mass, height) + outside * height[:, -1]
    with np.errstate(divide="ignore", invalid="ignore"):
        divergence: Floats = (p_log_p - p_log_q) / total + np.log(inside / total)
    uncovered = (mass[sizes - 1] <= 0) & (outside > 0)
    divergence[uncovered | (inside <= 0)] = np.inf
    return divergence


@lru_cache(maxsize=2)
def _list_candidates(bins: int) -> tuple[Indices, Indices]:
    """Return the numbers of bins [C], and the first bin of each level with the end: [C, 129]."""
    sizes = np.arange(LEVELS, bins + 1)
    return sizes, -(-sizes[:, None] * np.arange(LEVELS + 1) // LEVELS)


def _accumulate(values: npt.NDArray[np.generic]) -> Floats:
    """Return prefix sums, the first of them 0."""
    return np.concatenate(([0.0], np.cumsum(values, dtype=np.float64)))


def _replace_by_log(values: Floats) -> None:
    """Take the logarithm in place; 0 becomes 0, which its factor makes right."""
    values[values <= 0] = 1.0
    np.log(values, out=values)


def _x_log_x(values: Floats) -> Floats:
    return values * np.log(np.where(values > 0, values, 1.0))
