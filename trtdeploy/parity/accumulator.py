"""Metrics of one output over any number of samples, in memory that does not grow with them."""

from __future__ import annotations

import math

import numpy as np

from trtdeploy.core.arrays import Array, FloatArray
from trtdeploy.parity.chunks import iterate_chunks, iterate_rows
from trtdeploy.parity.counts import ExactCount, FinitenessCount
from trtdeploy.parity.exactness import find_family
from trtdeploy.parity.metrics import CloseCount, ErrorSums
from trtdeploy.parity.ranking import RankingSums
from trtdeploy.parity.result import OutputMetrics, Tolerance
from trtdeploy.parity.slices import SliceSums

SMALLEST_ATOL = 1e-7
"""Least absolute tolerance of a scaled one: an output of zeros may be off by FP16's smallest step,
6e-8 (IEEE 754 binary16)."""

_NEGLIGIBLE = 1e-5
"""An RMS error of a slice below this share of the output's largest magnitude is none: slices that
are all zero, or nearly so, have no scale of their own."""


class OutputAccumulator:
    """Takes one pair of outputs after the other and forgets them.

    The figures do not depend on how the samples are split into calls. Shapes must agree within a
    call, and may differ between calls (outputs whose size depends on the data).

    Args:
        tolerance: Defines "close", and how near two scores are a tie.
        class_axis: Axis of class scores for top-1 and top-5; None leaves those figures out.
    """

    def __init__(self, tolerance: Tolerance, *, class_axis: int | None = None) -> None:
        self._tolerance = tolerance
        self._class_axis = class_axis
        self._dtypes = ("", "")
        self._shape: tuple[int, ...] | None = None
        self._other_shape: tuple[int, ...] | None = None
        self._families: set[tuple[str, str]] = set()
        self._errors = ErrorSums()
        self._close = CloseCount(tolerance.rtol)
        self._ranking = RankingSums()
        self._slices = SliceSums(2, segments=1)
        self._exact = ExactCount()
        self._finiteness = FinitenessCount()

    def add(self, reference: Array, candidate: Array) -> None:
        """Add the outputs of one run."""
        if self._shape is None:
            self._shape = reference.shape
            self._dtypes = (reference.dtype.name, candidate.dtype.name)
        if reference.shape != candidate.shape:
            if self._other_shape is None:
                self._shape, self._other_shape = reference.shape, candidate.shape
            return
        families = find_family(reference), find_family(candidate)
        self._families.add(families)
        if families == ("float", "float"):
            self._add_floats(reference, candidate)
        elif families == ("complex", "complex"):
            self._add_floats(_split_complex(reference), _split_complex(candidate))
        elif families[0] == families[1]:
            self._exact.add(reference, candidate)

    @property
    def mixed_families(self) -> tuple[str, str] | None:
        """What the reference and the candidate hold, when that differs: integer beside float."""
        return next((pair for pair in self._families if pair[0] != pair[1]), None)

    def _add_floats(self, reference: Array, candidate: Array) -> None:
        self._slices.start(reference.shape)
        for offset, (left, right) in iterate_chunks(reference, candidate):
            self._add_piece(offset, left, right)
        axis = self._class_axis
        if axis is not None and reference.ndim > axis and reference.size:
            for rows in iterate_rows(reference, candidate, axis=axis):
                self._add_rows(*rows)

    def _add_piece(self, offset: int, reference: FloatArray, candidate: FloatArray) -> None:
        finite = self._finiteness.add(reference, candidate)
        if finite.all():
            self._slices.add(offset, ((candidate - reference) ** 2, reference**2))
        else:
            error = np.subtract(candidate, reference, out=np.zeros_like(reference), where=finite)
            self._slices.add(offset, (error**2, np.where(finite, reference, 0.0) ** 2))
            reference, candidate = reference[finite], candidate[finite]
        self._errors.add(reference, candidate)
        self._close.add(reference, candidate)

    def _add_rows(self, reference: FloatArray, candidate: FloatArray) -> None:
        finite = np.isfinite(reference).all(axis=1) & np.isfinite(candidate).all(axis=1)
        reference, candidate = reference[finite], candidate[finite]
        amax = np.abs(reference).max(axis=1, initial=0.0)
        rule = self._tolerance
        slack = rule.atol * (amax if rule.scaled else 1.0) + rule.rtol * amax
        self._ranking.add(reference, candidate, slack)

    def finish(self) -> OutputMetrics:
        """Return the figures over everything that was added."""
        errors = self._errors
        negligible = errors.elements * (_NEGLIGIBLE * errors.reference_amax) ** 2
        balances = [_measure_balance(s[:, :, 0], negligible) for _, s in self._slices.read()]
        metrics = OutputMetrics(
            shape=self._shape or (),
            reference_dtype=self._dtypes[0],
            candidate_dtype=self._dtypes[1],
            allclose_fraction=self._close.measure_fraction(
                find_atol(self._tolerance, errors.reference_amax)
            ),
            candidate_shape=self._other_shape,
            balanced_relative_l2=max(balances, default=None),
        )
        metrics = self._exact.fill_in(metrics)
        metrics = errors.fill_in(metrics)  # whose largest error counts where there are floats
        metrics = self._finiteness.fill_in(metrics)
        return self._ranking.fill_in(metrics)


def find_atol(tolerance: Tolerance, reference_amax: float) -> float:
    """Return the absolute part of a tolerance in units of the output."""
    if not tolerance.scaled:
        return tolerance.atol
    return max(tolerance.atol * reference_amax, SMALLEST_ATOL)


def _split_complex(array: Array) -> Array:
    return np.stack([array.real, array.imag])


def _measure_balance(sums: FloatArray, negligible: float) -> float:
    """Return the RMS over slices of each slice's relative L2 error, which counts as at most 1.

    Args:
        sums: Squared errors and squared references, by slice.
        negligible: Squared error, of all slices together, that is nothing beside the output.
    """
    errors, references = sums
    errors = np.where(errors * len(errors) <= negligible, 0.0, errors)
    # An error on a slice of zeros counts as 1, no error as 0.
    shares = np.divide(
        np.minimum(errors, references),
        references,
        out=(errors > 0).astype(np.float64),
        where=references > 0,
    )
    return math.sqrt(float(shares.mean()))
