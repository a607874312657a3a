"""One point of a parity check: the same feeds through every model, one sample set at a time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from trtdeploy.config.batch_layout import BatchLayout
from trtdeploy.core.arrays import Array, Feeds, Outputs, Runner
from trtdeploy.parity.comparison import ComparisonRules, OutputComparator
from trtdeploy.parity.judgement import with_finding
from trtdeploy.parity.points import ParityPoint
from trtdeploy.parity.result import (
    OutputComparison,
    OutputMetrics,
    PointResult,
    Tolerance,
    Verdict,
)
from trtdeploy.parity.rows import MatchedRows, forgive_tied_indices, match_rows
from trtdeploy.parity.tolerance import ToleranceProvider
from trtdeploy.samples.batch_parts import count_samples

TIED_VALUES = 1e-3
"""Values this near, as a share of the largest, are tied: one unit of FP16 is half of it."""


@dataclass(frozen=True)
class ParityPlan:
    """What is run and how it is judged.

    Attributes:
        points: Shapes to run.
        tolerance: What is allowed, by output.
        rules: Noise floor and its limits.
        match_rows: Rows of the outputs have no fixed order.
        batch: Where the batch is; None when it is fixed.
        independence: Points whose batch has two halves, to prove that samples stay apart.
    """

    points: tuple[ParityPoint, ...]
    tolerance: ToleranceProvider
    rules: ComparisonRules = field(default_factory=ComparisonRules)
    match_rows: bool = False
    batch: BatchLayout | None = None
    independence: tuple[ParityPoint, ...] = ()


@dataclass
class _RowCounts:
    missing: int = 0
    extra: int = 0
    moved: int = 0


class PointCheck:
    """Compares all outputs at one point; holds the outputs of one run at a time."""

    def __init__(self, point: ParityPoint, plan: ParityPlan) -> None:
        self.samples = 0
        self._point = point
        self._plan = plan
        self._shapes = dict(point.shapes)
        self._comparators: dict[str, OutputComparator] = {}
        self._tolerances: dict[str, Tolerance] = {}
        self._absent: dict[str, str] = {}
        self._rows: dict[str, _RowCounts] = {}
        self._tied = 0
        self._reference_s = 0.0
        self._candidate_s = 0.0

    def run(self, feeds: Feeds, reference: Runner, candidate: Runner) -> None:
        """Run every model on the same feeds and compare what they give."""
        if self.samples == 0:
            self._shapes = {name: array.shape for name, array in feeds.items()}
        start = time.perf_counter()
        expected = reference(feeds)
        middle = time.perf_counter()
        given = candidate(feeds)
        self._reference_s += middle - start
        self._candidate_s += time.perf_counter() - middle
        noise = self._plan.rules.noise
        outcomes = [] if noise is None else [run(feeds) for run in noise.runs]
        self.compare(expected, given, outcomes)
        self.samples += count_samples(feeds, self._plan.batch)

    def compare(
        self, reference: Outputs, candidate: Outputs, outcomes: list[Outputs] | None = None
    ) -> None:
        """Compare outputs that were run already; one outcome per run of the noise source."""
        for name in reference.keys() - candidate.keys():
            self._absent[name] = ", ".join(candidate)
        for name, array in reference.items():
            if name not in self._tolerances:
                self._tolerances[name] = self._plan.tolerance(name, array)
        if self._plan.match_rows:
            self._compare_rows(reference, candidate, outcomes or [])
            return
        for name in (name for name in reference if name in candidate):
            others = [outcome[name] for outcome in outcomes or [] if name in outcome]
            self._compare_output(name, reference[name], candidate[name], others)

    def _compare_rows(
        self, reference: Outputs, candidate: Outputs, outcomes: list[Outputs]
    ) -> None:
        matched = match_rows(reference, candidate)
        given, tied = forgive_tied_indices(matched.reference, matched.candidate, slack=TIED_VALUES)
        self._tied += tied
        for name in matched.names:
            counts = self._rows.setdefault(name, _RowCounts())
            counts.missing += matched.missing
            counts.extra += matched.extra
            counts.moved += matched.moved
        honest = [match_rows(matched.reference, outcome) for outcome in outcomes]
        for name in (name for name in matched.reference if name in given):
            others = [rows.candidate[name] for rows in honest if _is_usable(rows, name)]
            self._compare_output(name, matched.reference[name], given[name], others)

    def _compare_output(
        self, name: str, reference: Array, candidate: Array, outcomes: list[Array]
    ) -> None:
        if name not in self._comparators:
            comparator = OutputComparator(name, self._tolerances[name], self._plan.rules)
            self._comparators[name] = comparator
        self._comparators[name].add(reference, candidate, outcomes)

    def finish(self, problem: str = "") -> PointResult:
        """Return the result over everything that was compared.

        Args:
            problem: Why the point could not be run to its end.
        """
        outputs = [self._finish_output(name) for name in self._tolerances]
        if not outputs and not problem:
            problem = "no sample was compared"
        return PointResult(
            self._point.optimization_profile,
            self._point.name,
            self._shapes,
            self.samples,
            tuple(outputs),
            self._reference_s,
            self._candidate_s,
            problem,
        )

    def _finish_output(self, name: str) -> OutputComparison:
        tolerance = self._tolerances[name]
        if name in self._absent:
            text = f"the candidate has no output {name!r}; it has {self._absent[name] or 'none'}"
            metrics = OutputMetrics((), "", "")
            return OutputComparison(name, Verdict.FAIL, (text,), metrics, tolerance)
        if name not in self._comparators:
            comparator = OutputComparator(name, tolerance, self._plan.rules)
            return comparator.finish()
        comparison = self._comparators[name].finish()
        for verdict, text in self._judge_rows(name):
            comparison = with_finding(comparison, verdict, text)
        return comparison

    def _judge_rows(self, name: str) -> Iterator[tuple[Verdict, str]]:
        counts = self._rows.get(name, _RowCounts())
        if counts.missing or counts.extra:
            text = f"rows of the reference without a partner in the candidate: {counts.missing}"
            yield Verdict.FAIL, f"{text}; extra rows of the candidate: {counts.extra}"
        if counts.moved:
            yield Verdict.PASS, f"rows that stand elsewhere, matched by value: {counts.moved}"
        if self._tied and name in self._rows:
            yield Verdict.PASS, f"indices of tied values counted as equal: {self._tied}"


def _is_usable(rows: MatchedRows, name: str) -> bool:
    return not rows.missing and not rows.extra and name in rows.candidate
