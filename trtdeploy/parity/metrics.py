"""Error figures of floating-point outputs, from sums that any number of samples add to.

Symbols: r is the reference, c the candidate, e = c - r, over all elements where both are finite.

==================  =================================================================
max_abs_error       max |e|
mean_abs_error      sum |e| / n
relative_l2         ||e|| / ||r||
cosine              <r, c> / (||r|| ||c||)
sqnr_db             10 log10(||r||^2 / ||e||^2) = -20 log10(relative_l2)
allclose_fraction   share of elements with |e| <= atol + rtol |r|, ``numpy.isclose``
histogram           number of elements with 10^k <= |e| < 10^(k+1), for each k
==================  =================================================================

Sources: relative error in the 2-norm, N. J. Higham, Accuracy and Stability of Numerical Algorithms,
2nd ed., 2002, section 1.2; SQNR, ITU-T G.712 and any text on quantization, e.g. B. Widrow and
I. Kollar, Quantization Noise, 2008, section 1. A figure is None where its denominator is 0: the
relative error on a zero vector, the cosine with one, the SQNR without an error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from trtdeploy.core.arrays import FloatArray
from trtdeploy.parity.result import OutputMetrics

FIRST_DECADE, LAST_DECADE = -20, 40
"""Errors below 1e-20 or from 1e40 on are counted in the outermost decade."""
_EXCESS_STEPS = 16
_FIRST_OCTAVE, _LAST_OCTAVE = -100, 130


def relative_l2(error_squares: float, reference_squares: float) -> float | None:
    """Return ``sqrt(sum e^2 / sum r^2)``; None when every r is 0."""
    return math.sqrt(error_squares / reference_squares) if reference_squares > 0 else None


def cosine_similarity(
    product: float, reference_squares: float, candidate_squares: float
) -> float | None:
    """Return ``sum r c / sqrt(sum r^2 sum c^2)`` within [-1, 1]; None for a zero vector."""
    norms = math.sqrt(reference_squares) * math.sqrt(candidate_squares)
    return max(-1.0, min(1.0, product / norms)) if norms > 0 else None


def sqnr_db(error_squares: float, reference_squares: float) -> float | None:
    """Return ``10 log10(sum r^2 / sum e^2)``; None without an error or without a signal."""
    if error_squares <= 0 or reference_squares <= 0:
        return None
    return 10.0 * (math.log10(reference_squares) - math.log10(error_squares))


@dataclass
class ErrorSums:
    """Sums over finite pairs; adding pieces in any order or split gives the same figures.

    Attributes:
        elements: Pairs that were added.
        max_abs: Largest |e|.
        abs_total: Sum of |e|.
        error_squares: Sum of e^2.
        reference_squares: Sum of r^2.
        candidate_squares: Sum of c^2.
        product: Sum of r c.
        reference_amax: Largest |r|.
        decades: Counts of |e| by decade from ``FIRST_DECADE``; equal elements are in none.
    """

    elements: int = 0
    max_abs: float = 0.0
    abs_total: float = 0.0
    error_squares: float = 0.0
    reference_squares: float = 0.0
    candidate_squares: float = 0.0
    product: float = 0.0
    reference_amax: float = 0.0
    decades: npt.NDArray[np.int64] = field(
        default_factory=lambda: np.zeros(LAST_DECADE - FIRST_DECADE, np.int64)
    )

    def add(self, reference: FloatArray, candidate: FloatArray) -> None:
        """Add pairs; both arrays are finite and of one shape."""
        if reference.size == 0:
            return
        error = np.abs(candidate - reference)
        self.elements += error.size
        self.max_abs = max(self.max_abs, float(error.max()))
        self.abs_total += float(error.sum())
        self.error_squares += _sum_products(error, error)
        self.reference_squares += _sum_products(reference, reference)
        self.candidate_squares += _sum_products(candidate, candidate)
        self.product += _sum_products(reference, candidate)
        self.reference_amax = max(self.reference_amax, float(np.abs(reference).max()))
        self.decades += _count_decades(error)

    def fill_in(self, metrics: OutputMetrics) -> OutputMetrics:
        """Return ``metrics`` with the figures of these sums; unchanged when nothing was added."""
        if self.elements == 0:
            return metrics
        squares = self.error_squares, self.reference_squares
        counts, edges = self.to_histogram()
        return replace(
            metrics,
            reference_amax=self.reference_amax,
            max_abs_error=self.max_abs,
            mean_abs_error=self.abs_total / self.elements,
            relative_l2=relative_l2(*squares),
            cosine=cosine_similarity(self.product, self.reference_squares, self.candidate_squares),
            sqnr_db=sqnr_db(*squares),
            histogram=counts,
            histogram_edges=edges,
        )

    def to_histogram(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return counts and edges (exponents of ten) of the decades that hold an error."""
        filled = np.flatnonzero(self.decades)
        if filled.size == 0:
            return (), ()
        first, last = int(filled[0]), int(filled[-1]) + 1
        edges = tuple(range(first + FIRST_DECADE, last + FIRST_DECADE + 1))
        return tuple(int(count) for count in self.decades[first:last]), edges


def _sum_products(left: FloatArray, right: FloatArray) -> float:
    # numpy adds up pairwise, which is more exact than a dot product and starts no BLAS threads.
    return float((left * right).sum())


def _count_decades(error: FloatArray) -> npt.NDArray[np.int64]:
    powers = np.floor(np.log10(error[error > 0]))
    bins = np.clip(powers - FIRST_DECADE, 0, LAST_DECADE - FIRST_DECADE - 1).astype(np.int64)
    return np.bincount(bins, minlength=LAST_DECADE - FIRST_DECADE)


class CloseCount:
    """Share of elements within ``atol + rtol |r|``, also when atol is known only at the end.

    ``atol`` may be a share of the largest magnitude of the whole reference. So what is counted is
    the excess x = |e| - rtol |r|, in bins of 1/16 octave, with its exact maximum: "all are close"
    is exact, a smaller share is a lower bound that misses less than one bin.

    Args:
        rtol: Part of the tolerance that is relative to each element.
    """

    def __init__(self, rtol: float) -> None:
        self._rtol = rtol
        self._within = 0
        self._largest = 0.0
        self._bins = np.zeros((_LAST_OCTAVE - _FIRST_OCTAVE) * _EXCESS_STEPS, np.int64)

    def add(self, reference: FloatArray, candidate: FloatArray) -> None:
        """Add pairs; both arrays are finite and of one shape."""
        excess = np.abs(candidate - reference) - self._rtol * np.abs(reference)
        beyond = excess[excess > 0]
        self._within += excess.size - beyond.size
        if beyond.size:
            self._largest = max(self._largest, float(beyond.max()))
            steps = (np.log2(beyond) - _FIRST_OCTAVE) * _EXCESS_STEPS
            bins = np.clip(np.floor(steps), 0, self._bins.size - 1).astype(np.int64)
            self._bins += np.bincount(bins, minlength=self._bins.size)

    def measure_fraction(self, atol: float) -> float | None:
        """Return the share of close elements; None when there are no elements.

        Args:
            atol: In units of the output.
        """
        total = self._within + int(self._bins.sum())
        if total == 0:
            return None
        if self._largest <= atol:
            return 1.0
        if atol <= 0:
            return self._within / total
        whole = int(np.clip((math.log2(atol) - _FIRST_OCTAVE) * _EXCESS_STEPS, 0, self._bins.size))
        return (self._within + int(self._bins[:whole].sum())) / total
