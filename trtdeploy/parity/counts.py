"""Counts that metrics keep beside the error sums: exact equality, and what is not finite."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from trtdeploy.core.arrays import Array, FloatArray
from trtdeploy.parity.result import OutputMetrics
from trtdeploy.parity.slices import is_float


@dataclass
class FinitenessCount:
    """Where NaN and infinities are, and whether both sides have the same ones.

    Attributes:
        elements: Pairs that were added.
        reference: Elements of the reference that are not finite.
        candidate: Elements of the candidate that are not finite.
        only_candidate: Those of the candidate where the reference is finite.
        agreeing: Pairs that are both NaN, or the same infinity.
    """

    elements: int = 0
    reference: int = 0
    candidate: int = 0
    only_candidate: int = 0
    agreeing: int = 0

    def add(self, reference: FloatArray, candidate: FloatArray) -> npt.NDArray[np.bool_]:
        """Count, and return where both sides are finite."""
        left, right = np.isfinite(reference), np.isfinite(candidate)
        both = left & right
        self.elements += reference.size
        if not both.all():
            neither = ~left & ~right
            first, second = reference[neither], candidate[neither]
            same = (first == second) | (np.isnan(first) & np.isnan(second))
            self.reference += int(np.count_nonzero(~left))
            self.candidate += int(np.count_nonzero(~right))
            self.only_candidate += int(np.count_nonzero(left & ~right))
            self.agreeing += int(np.count_nonzero(same))
        return both

    def fill_in(self, metrics: OutputMetrics) -> OutputMetrics:
        """Return ``metrics`` with these counts."""
        return replace(
            metrics,
            nonfinite_reference=self.reference,
            nonfinite_candidate=self.candidate,
            nonfinite_only_candidate=self.only_candidate,
            nonfinite_agreeing=self.agreeing,
            elements=metrics.elements + self.elements,
        )


class ExactCount:
    """Equality of integers, booleans and text.

    Attributes:
        elements: Pairs that were added.
        equal: Pairs that hold the same value.
    """

    def __init__(self) -> None:
        self.elements = 0
        self.equal = 0
        self._gap: int | None = None

    def add(self, reference: Array, candidate: Array) -> None:
        """Add pairs of one shape and one family."""
        self.elements += reference.size
        self.equal += int(np.count_nonzero(find_equal(reference, candidate)))
        if find_family(reference) == "integer":
            self._gap = max(self._gap or 0, measure_largest_gap(reference, candidate))

    @property
    def fraction(self) -> float | None:
        """Share of equal pairs; None when nothing was added."""
        return self.equal / self.elements if self.elements else None

    @property
    def largest_gap(self) -> float | None:
        """Largest difference of integers; None for booleans and text."""
        return None if self._gap is None else float(self._gap)

    def fill_in(self, metrics: OutputMetrics) -> OutputMetrics:
        """Return ``metrics`` with these counts."""
        return replace(
            metrics,
            equal_fraction=self.fraction,
            max_abs_error=self.largest_gap,
            elements=metrics.elements + self.elements,
        )


_FAMILIES = {"i": "integer", "u": "integer", "b": "boolean", "c": "complex"}
_TEXT = ("O", "U", "S", "T")


def find_family(array: Array) -> str:
    """Return ``float``, ``integer``, ``boolean``, ``text`` or ``complex``.

    ml_dtypes' 4-bit and 2-bit integers count as integers.
    """
    if is_float(array):
        return "float"
    if array.dtype.kind == "V" and "int" in array.dtype.name:
        return "integer"
    if array.dtype.kind in _TEXT:
        return "text"
    return _FAMILIES.get(array.dtype.kind, array.dtype.name)


def find_equal(reference: Array, candidate: Array) -> npt.NDArray[np.bool_]:
    """Return where two arrays of one shape and one family hold the same value.

    int64 beyond 2^53 is told apart, and so is uint64 from a negative int64, although numpy would
    promote that pair to FP64.
    """
    if find_family(reference) != "integer":
        return np.asarray(reference == candidate, dtype=np.bool_)
    left, right = _widen(reference), _widen(candidate)
    equal = left.view(np.uint64) == right.view(np.uint64)
    if left.dtype != right.dtype:
        signed = left if left.dtype == np.int64 else right
        equal &= signed >= 0
    return np.asarray(equal, dtype=np.bool_)


def measure_largest_gap(reference: Array, candidate: Array) -> int:
    """Return the largest |candidate - reference| of two integer arrays, exactly."""
    if reference.size == 0:
        return 0
    left, right = _widen(reference), _widen(candidate)
    if left.dtype != right.dtype:
        pairs = zip(left.reshape(-1).tolist(), right.reshape(-1).tolist(), strict=True)
        return max(abs(int(a) - int(b)) for a, b in pairs)
    # The difference modulo 2^64 is the true one, for it lies within [0, 2^64).
    gap = np.maximum(left, right).view(np.uint64) - np.minimum(left, right).view(np.uint64)
    return int(gap.max())


def _widen(array: Array) -> Array:
    wide = np.uint64 if array.dtype.kind == "u" or "uint" in array.dtype.name else np.int64
    return np.atleast_1d(np.ascontiguousarray(array)).astype(wide)
