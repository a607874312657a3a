"""Top-1 and top-5 agreement of class scores, ties included.

A row is one set of scores, along the class axis. With i = arg max of the reference and j = arg max
of the candidate, the *gap* of a row is r[i] - r[j] >= 0: by how much the reference itself prefers
its own answer. A row with i != j whose gap is within the tolerance is a tie: it counts as agreeing
and is counted in ``tied_rows``. The top-5 overlap counts a class of the candidate's five when its
reference score reaches the fifth best of the reference, less the same tolerance. Top-k accuracy as
in O. Russakovsky et al., ImageNet Large Scale Visual Recognition Challenge, IJCV 2015, section 4.1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from trtdeploy.core.arrays import FloatArray
from trtdeploy.parity.result import OutputMetrics

TOP = 5


@dataclass
class RankingSums:
    """Counts over rows; adding rows in any order or split gives the same figures.

    Attributes:
        rows: Rows that were compared.
        flips: Rows whose arg max changed beyond a tie.
        ties: Rows that agree only because of a tie.
        largest_gap: Largest gap of a flip.
        largest_tie: Largest gap of a tie.
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
            candidate: Same shape.
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
