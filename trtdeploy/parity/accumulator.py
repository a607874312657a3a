"""Metrics of one output over any number of samples, in memory that does not grow with them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from trtdeploy.core.arrays import Array, FloatArray
from trtdeploy.parity.counts import ExactCount, FinitenessCount, find_family
from trtdeploy.parity.metrics import CloseCount, ErrorSums
from trtdeploy.parity.result import OutputMetrics, Tolerance
from trtdeploy.parity.slices import SliceSums, iterate_chunks, iterate_rows

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


TOP = 5


@dataclass
class RankingSums:
    """Top-1 and top-5 agreement of class scores, ties included, however rows are split into calls.

    A row is one set of scores, along the class axis. With i = arg max of the reference and j = arg
    max of the candidate, the *gap* of a row is r[i] - r[j] >= 0: by how much the reference itself
    prefers its own answer. A row with i != j whose gap is within the tolerance is a tie: it counts
    as agreeing and is counted in ``tied_rows``. The top-5 overlap counts a class of the candidate's
    five when its reference score reaches the fifth best of the reference, less the same tolerance.
    Top-k accuracy as in O. Russakovsky et al., ImageNet Large Scale Visual Recognition Challenge,
    IJCV 2015, section 4.1.

    Attributes:
        rows: Rows that were compared.
        flips: Rows whose arg max changed beyond a tie.
        ties: Rows that agree only because of a tie.
        largest_gap: Largest gap among the flips.
        largest_tie: Largest gap among the ties.
        overlap: Sum over rows of the top-5 overlap, 0 to 1 each.
        overlap_rows: Rows with more than five classes.
    """

    rows: int = 0
    flips: int = 0
    ties: int = 0
    largest_gap: float = 0.0
    largest_tie: float = 0.0
    overlap: float = 0.0
    overlap_rows: int = 0

    def add(self, reference: FloatArray, candidate: FloatArray, slack: FloatArray) -> None:
        """Add finite rows.

        Args:
            reference: Scores, rows x classes, at least one class.
            candidate: Scores of the same rows and classes.
            slack: Largest gap that counts as a tie, one per row.
        """
        every = np.arange(len(reference))
        best = reference.argmax(axis=1)
        chosen = candidate.argmax(axis=1)
        gaps = reference[every, best] - reference[every, chosen]
        flipped = gaps > slack
        tied = (best != chosen) & ~flipped
        self.rows += len(every)
        self.flips += int(flipped.sum())
        self.ties += int(tied.sum())
        self.largest_gap = max(self.largest_gap, float(gaps[flipped].max(initial=0.0)))
        self.largest_tie = max(self.largest_tie, float(gaps[tied].max(initial=0.0)))
        if reference.shape[1] > TOP:
            self.overlap_rows += len(every)
            self.overlap += float(_measure_overlap(reference, candidate, slack).sum())

    @property
    def top1_agreement(self) -> float | None:
        """Share of rows without a flip; None without rows."""
        return 1.0 - self.flips / self.rows if self.rows else None

    @property
    def top5_agreement(self) -> float | None:
        """Mean top-5 overlap; None without rows of more than five classes."""
        return self.overlap / self.overlap_rows if self.overlap_rows else None

    def fill_in(self, metrics: OutputMetrics) -> OutputMetrics:
        """Return ``metrics`` with the figures of these rows."""
        return replace(
            metrics,
            top1_agreement=self.top1_agreement,
            top5_agreement=self.top5_agreement,
            argmax_flips=self.flips,
            largest_flip_gap=self.largest_gap if self.flips else None,
            tied_rows=self.ties,
            largest_tie_gap=self.largest_tie if self.ties else None,
        )


def _measure_overlap(
    reference: FloatArray, candidate: FloatArray, slack: FloatArray
) -> npt.NDArray[np.float64]:
    fifth = np.partition(reference, -TOP, axis=1)[:, -TOP]
    chosen = np.argpartition(candidate, -TOP, axis=1)[:, -TOP:]
    scores = np.take_along_axis(reference, chosen, axis=1)
    return np.asarray((scores >= (fifth - slack)[:, None]).mean(axis=1))
