"""The parity check: reference and candidate on the same feeds, at every point of the profile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from trtdeploy.config.batch_layout import BatchLayout
from trtdeploy.config.recipe import FP32
from trtdeploy.core.arrays import Feeds, FeedsMaker, Runner
from trtdeploy.core.errors import ExecutionError, FeedError
from trtdeploy.core.tensors import format_shape
from trtdeploy.parity.comparison import ComparisonRules
from trtdeploy.parity.judgement import with_finding
from trtdeploy.parity.point_check import ParityPlan, PointCheck
from trtdeploy.parity.points import ParityPoint
from trtdeploy.parity.result import ParityReport, PointResult, Verdict
from trtdeploy.parity.tolerance import make_tolerance_provider
from trtdeploy.samples.batch_parts import count_samples, join_parts, split_feeds


@dataclass(frozen=True)
class ParityProgress:
    """Where a check is.

    Attributes:
        point: What is being run.
        position: Of the point, from 1.
        total: Number of points.
        samples: Samples compared at this point so far.
    """

    point: ParityPoint
    position: int
    total: int
    samples: int


Observer = Callable[[ParityProgress], None]


def check_parity(
    reference: Runner,
    candidate: Runner,
    *,
    plan: ParityPlan,
    make_feeds: FeedsMaker,
    subject: ParityReport,
    progress: Observer | None = None,
) -> ParityReport:
    """Run both models at every point and return what was found.

    One run's feeds and outputs are in memory at a time, whatever the number of samples. A point
    at which a model refuses its feeds or fails is reported as a failure, and the others still run.

    Args:
        reference: The FP32 baseline.
        candidate: The model under test.
        plan: What is run and how it is judged.
        make_feeds: Makes the feeds of a point from its shapes and shape-tensor values.
        subject: A report without points, which says what is compared; it is returned completed.
        progress: Is told before the first sample of each point and after every sample.

    Raises:
        TrtdeployError: The data cannot be read. Not raised for differences: those are in the
            report.
    """
    check = _Check(reference, candidate, plan, make_feeds)
    total = len(plan.points) + len(plan.independence)
    results: list[PointResult] = []
    for position, point in enumerate((*plan.points, *plan.independence), start=1):

        def report(samples: int, point: ParityPoint = point, position: int = position) -> None:
            if progress is not None:
                progress(ParityProgress(point, position, total, samples))

        report(0)
        is_corner = position <= len(plan.points)
        results.extend(check.run(point, report) if is_corner else check.run_halves(point))
    notes = (*subject.notes, *dict.fromkeys(check.notes))
    return replace(subject, points=tuple(results), notes=notes)


class _Check:
    def __init__(
        self, reference: Runner, candidate: Runner, plan: ParityPlan, make_feeds: FeedsMaker
    ) -> None:
        self.notes: list[str] = []
        self._reference = reference
        self._candidate = candidate
        self._plan = plan
        self._make_feeds = make_feeds

    def run(self, point: ParityPoint, report: Callable[[int], None]) -> list[PointResult]:
        """Compare the candidate with the reference at one point."""
        check = PointCheck(point, self._plan)
        for feeds in self._make_feeds(point.shapes, point.values):
            self._note_other_shapes(point, feeds)
            try:
                check.run(feeds, self._reference, self._candidate)
            except (ExecutionError, FeedError) as error:
                return [check.finish(f"cannot be run: {error}")]
            report(check.samples)
        return [check.finish()]

    def run_halves(self, point: ParityPoint) -> Iterator[PointResult]:
        """Compare each model with itself: a batch [a, b] with a and b alone."""
        batch = self._plan.batch
        feeds = next(self._make_feeds(point.shapes, point.values), None)
        if batch is None or feeds is None:
            return
        wanted = next(point.shapes[name][axis] for name, axis in batch.inputs.items())
        given = count_samples(feeds, batch)
        if wanted != given:
            self.notes.append(
                f"batch independence needs {wanted} samples in a batch, the data give {given}: "
                "not checked"
            )
            return
        plain = replace(self._plan, rules=ComparisonRules())  # rounding alone explains no mixing
        strict = make_tolerance_provider(FP32)
        for who, run, tolerance in (
            ("reference", self._reference, strict),
            ("candidate", self._candidate, self._plan.tolerance),
        ):
            named = replace(point, name=f"{point.name} of the {who}")
            check = PointCheck(named, replace(plain, tolerance=tolerance))
            yield _run_halves(check, run, feeds, batch)

    def _note_other_shapes(self, point: ParityPoint, feeds: Feeds) -> None:
        batch = self._plan.batch
        for name, array in feeds.items():
            wanted, axis = point.shapes.get(name), (batch.inputs if batch else {}).get(name)
            if wanted is None or _drop(array.shape, axis) == _drop(wanted, axis):
                continue
            self.notes.append(
                f"point {point.name} of {point.optimization_profile} asks for {name} "
                f"{format_shape(wanted)}; the data have {format_shape(array.shape)}, so this shape "
                "was not run"
            )


def _drop(shape: tuple[int, ...], axis: int | None) -> tuple[int, ...]:
    return shape if axis is None else shape[:axis] + shape[axis + 1 :]


def _run_halves(check: PointCheck, run: Runner, feeds: Feeds, batch: BatchLayout) -> PointResult:
    half = count_samples(feeds, batch) // 2
    try:
        whole = run(feeds)
        parts = [run(part) for part in split_feeds(feeds, batch, (half, half))]
    except (ExecutionError, FeedError) as error:
        return check.finish(f"cannot be run: {error}")
    for joined in join_parts(parts, whole, batch):
        check.compare(joined, whole)
    check.samples += 2 * half
    result = check.finish()
    text = "the model mixes samples: its output for [a, b] is not that for [a] and [b]"
    outputs = [
        with_finding(output, Verdict.FAIL, text) if output.verdict is Verdict.FAIL else output
        for output in result.outputs
    ]
    return replace(result, outputs=tuple(outputs))
