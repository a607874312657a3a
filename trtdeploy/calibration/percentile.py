"""Amax that a given share of the magnitudes does not exceed."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from trtdeploy.calibration.histogram import MagnitudeHistogram, find_edges
from trtdeploy.core.errors import UsageError

DEFAULT_PERCENTILE = 99.99
_ALL = 100


def find_percentile(histogram: MagnitudeHistogram, percentile: float = DEFAULT_PERCENTILE) -> float:
    """Return the smallest magnitude that ``percentile`` percent of the values do not exceed.

    That is the order statistic ``ceil(n * percentile / 100)`` of all magnitudes, zeros included
    (``numpy.percentile(..., method="inverted_cdf")``), found within 0.8 %: its bin is exact, and
    its place inside the bin follows from its rank there.

    Args:
        histogram: At least one of its values is not zero.
        percentile: Above 0, at most 100.

    Returns:
        At most the largest magnitude; that itself when the percentile is 0, as it is for a tensor
        that is nearly always zero.

    Raises:
        UsageError: There is no such percentile.
    """
    check_percentile(percentile)
    cumulative = np.cumsum(histogram.counts)
    count = int(cumulative[-1])
    rank = math.ceil(Fraction(str(percentile)) * count / _ALL)
    if rank == count:
        return histogram.largest
    bin_index = int(np.searchsorted(cumulative, rank))
    if bin_index == 0:
        return histogram.largest
    inside = int(histogram.counts[bin_index])
    low, high = find_edges([bin_index, bin_index + 1])
    place = (rank - (int(cumulative[bin_index]) - inside) - 0.5) / inside
    return min(float(low + (high - low) * place), histogram.largest)


def check_percentile(percentile: float) -> None:
    """Raise ``UsageError`` unless it is a percentile."""
    if not 0 < percentile <= _ALL:
        raise UsageError(
            f"{percentile:g} is no percentile", hint="Give a number above 0 and at most 100."
        )
