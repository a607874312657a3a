"""How much lies below a magnitude: partial moments of a histogram."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trtdeploy.calibration.histogram import MagnitudeHistogram, find_bins, find_edges

Floats = npt.NDArray[np.float64]

_POINT_WIDTH = 1e-6
"""Relative width of the last bin when its values all are its lower edge."""


@dataclass(frozen=True)
class Moments:
    """Sums over the values below some magnitudes: of 1, of x, and of x squared."""

    zeroth: Floats
    first: Floats
    second: Floats


class MagnitudeDensity:
    """The values of a histogram as a density: even within a bin, and nothing above the largest.

    Args:
        histogram: At least one of its values is not zero.
    """

    def __init__(self, histogram: MagnitudeHistogram) -> None:
        self.largest = histogram.largest
        top = int(find_bins(self.largest))
        counts = histogram.counts[: top + 1].astype(np.float64)
        edges = find_edges(np.arange(top + 2))
        edges[-1] = max(self.largest, edges[-2] * (1 + _POINT_WIDTH))
        low, high = edges[:-1], edges[1:]
        self._last_edge = edges[-1]
        self._low = low
        self._per_width = counts / (high - low)
        sums = (
            counts,
            counts * (low + high) / 2,
            counts * (low * low + low * high + high * high) / 3,
        )
        self._below = tuple(np.concatenate(([0.0], np.cumsum(each))) for each in sums)

    @property
    def edges(self) -> Floats:
        """Lower edges of the bins up to that of the largest, ascending; the first is 0."""
        return self._low

    @property
    def total(self) -> Moments:
        """Moments of all values."""
        zeroth, first, second = (below[-1:] for below in self._below)
        return Moments(zeroth, first, second)

    def measure_mass(self, limits: Floats) -> Floats:
        """Return how many values lie below each limit."""
        bins, x, low = self._locate(limits)
        return self._below[0][bins] + self._per_width[bins] * (x - low)

    def measure_moments(self, limits: Floats) -> Moments:
        """Return the moments of the values below each limit."""
        bins, x, low = self._locate(limits)
        inside = self._per_width[bins] * (x - low)
        return Moments(
            self._below[0][bins] + inside,
            self._below[1][bins] + inside * (x + low) / 2,
            self._below[2][bins] + inside * (x * x + x * low + low * low) / 3,
        )

    def _locate(self, limits: Floats) -> tuple[npt.NDArray[np.int64], Floats, Floats]:
        """Return bin, limit, and lower edge of the bin; all lies below the largest."""
        reached = limits >= self.largest
        bins = find_bins(np.where(reached, self.largest, limits))
        low = self._low[bins]
        # Rounding to FP32 may have reached the next bin.
        x = np.where(reached, self._last_edge, np.maximum(limits, low))
        return bins, x, low
