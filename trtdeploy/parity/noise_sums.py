"""Sums that tell an error from rounding, slice by slice, over any number of samples."""

from __future__ import annotations

import math

import numpy as np

from trtdeploy.core.arrays import Array, FloatArray
from trtdeploy.core.number_formats import FP32_ROUNDING
from trtdeploy.parity.metrics import CloseCount
from trtdeploy.parity.noise import NoiseSource
from trtdeploy.parity.slices import SliceSums, iterate_chunks

COUNT, LEAD, LEAN, NOISE_LEAN, VALUE, SQUARE, DRIFT, NOISE_DRIFT, GAP_SQUARE, NOISE_SQUARE = range(
    10
)
"""Rows of the sums. With r the reference, c the candidate, e an outcome of the noise source,
a = c - r, b = headroom (e - r), both less half a step of the output's type, l the rounding of the
output itself (a step where it is subnormal: dead channels) and q = sqrt(a^2 + b^2 + l^2):
1, (a^2 - b^2) / q^2, a / q, b / q, r, r^2, r a / q, r b / q, (c - e)^2, b^2.

Dividing by q makes every element count the same, between -1 and 1, whatever the scale of its slice
and however heavy the tails of the errors: a handful of anchors with huge errors, or saturated
scores with none, decide nothing."""
QUANTITIES = 10

_MEAN_ROUNDING = 0.425
"""RMS of the rounding error over the unit, for log-uniform significands: sqrt(0.541 / 3); the law
is in D. Knuth, The Art of Computer Programming 2, section 4.2.4."""


class NoiseSums:
    """Takes reference, honest outcomes and candidate of one output, sample by sample.

    Args:
        source: Where the honest outcomes come from.
        rtol: Of the output's tolerance, to count how many elements of an outcome are close.
    """

    def __init__(self, source: NoiseSource, rtol: float = 0.0) -> None:
        self.source = source
        self.close = CloseCount(rtol)
        self.total = np.zeros(QUANTITIES)
        self.overflowed = 0
        self.slices = SliceSums(QUANTITIES)

    def add(self, reference: Array, outcomes: list[Array], candidate: Array) -> None:
        """Add one run; outputs that cannot be compared with the reference are left out.

        Args:
            reference: Floating point.
            outcomes: One per run of the source.
            candidate: Floating point, of the reference's shape.
        """
        scale = _measure_scale(reference)
        for outcome in outcomes:
            if outcome.shape != reference.shape:
                continue
            self.slices.start(reference.shape)
            for offset, pieces in iterate_chunks(reference, outcome, candidate):
                values = self._measure(scale, *pieces)
                self.slices.add(offset, values)
                self.total += [value.sum() for value in values]

    def _measure(
        self, scale: float, reference: FloatArray, outcome: FloatArray, candidate: FloatArray
    ) -> list[FloatArray]:
        usable = np.isfinite(reference) & np.isfinite(candidate)
        self.overflowed += int(np.count_nonzero(usable & ~np.isfinite(outcome)))
        usable &= np.isfinite(outcome)
        if not usable.all():
            reference, outcome, candidate = (
                np.where(usable, array, 0.0) for array in (reference, outcome, candidate)
            )
        rounding = self.source.rounding
        self.close.add(reference[usable], outcome[usable])
        error = _shrink(candidate - reference, rounding.step / 2)
        noise = _shrink((outcome - reference) * self.source.headroom, rounding.step / 2)
        floor = (_MEAN_ROUNDING * rounding.unit * reference) ** 2 + rounding.step**2
        error_square, noise_square = error**2, noise**2
        # The smallest FP64 keeps 0/0 away where everything is an exact zero.
        size = error_square + noise_square + floor + scale**2 + np.finfo(np.float64).tiny
        lean, noise_lean = error / np.sqrt(size), noise / np.sqrt(size)
        return [
            usable.astype(np.float64),
            (error_square - noise_square) / size,
            lean,
            noise_lean,
            reference,
            reference**2,
            reference * lean,
            reference * noise_lean,
            (candidate - outcome) ** 2,
            noise_square,
        ]


def _shrink(error: FloatArray, amount: float) -> FloatArray:
    """Take a rounding of the smallest numbers off: one side may store FP32, the other may not."""
    return np.copysign(np.maximum(np.abs(error) - amount, 0.0), error)


def _measure_scale(reference: Array) -> float:
    """Return FP32's unit of the output's RMS: sums of such numbers are not exact to less."""
    squares = 0.0
    for _, (piece,) in iterate_chunks(reference):
        finite = piece[np.isfinite(piece)]
        squares += float((finite * finite).sum())
    return FP32_ROUNDING.unit * math.sqrt(squares / max(reference.size, 1))
