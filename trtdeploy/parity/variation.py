"""How much the reference changes from sample to sample: outputs that never change prove nothing."""

from __future__ import annotations

import math

import numpy as np

from trtdeploy.core.arrays import Array
from trtdeploy.parity.chunks import iterate_chunks

_SAME = 2.0**-20
"""FP32 sums differ by about this much between samples that make no difference."""


class SampleVariation:
    """RMS difference of consecutive samples over the RMS of the output.

    Samples are the positions of axis 0 (a vector is one sample), and runs follow each other; only
    the last sample is kept.
    """

    def __init__(self) -> None:
        self._last: Array | None = None
        self._difference = 0.0
        self._square = 0.0
        self._pairs = 0

    def add(self, reference: Array) -> None:
        """Add the output of one run."""
        samples = reference if reference.ndim > 1 else reference.reshape(1, -1)
        if samples.size == 0:
            return
        if self._last is not None and self._last.shape == samples[:1].shape:
            self._add_pairs(self._last, samples[:1])
        self._add_pairs(samples[:-1], samples[1:])
        # A copy, or the whole output would stay in memory.
        self._last = samples[-1:].copy()

    def _add_pairs(self, earlier: Array, later: Array) -> None:
        for _, (before, after) in iterate_chunks(earlier, later):
            finite = np.isfinite(before) & np.isfinite(after)
            # Half the squared difference of two draws estimates the variance.
            self._difference += float(((after - before)[finite] ** 2).sum()) / 2
            self._square += float((after[finite] ** 2).sum())
            self._pairs += before.size

    @property
    def relative(self) -> float:
        """Relative variation; 0 when everything is zero."""
        return math.sqrt(self._difference / self._square) if self._square > 0 else 0.0

    def is_blind(self, noise_floor: float) -> bool:
        """Tell whether samples differ by no more than rounding does.

        Args:
            noise_floor: Relative L2 error of rounding; 0 when unknown.
        """
        return self._pairs > 0 and self.relative <= max(noise_floor, _SAME)
