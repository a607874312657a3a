"""The ``parity`` section of ``report.json``: what ``ParityReport.to_dict`` returns."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any

from pydantic import Discriminator, Tag

from trtdeploy.parity.result import Verdict, worst_verdict
from trtdeploy.report.fields import Count, Integer, ReportModel, Seconds, Sizes, Text


class MetricsEntry(ReportModel):
    """How one output differs from the FP32 baseline; null is a figure the output has not.

    Attributes:
        shape: Of the reference.
        reference_dtype: Element type of the reference.
        candidate_dtype: Element type of the candidate.
        reference_amax: Largest finite magnitude of the reference.
        max_abs_error: In units of the output.
        mean_abs_error: In units of the output.
        relative_l2: Norm of the difference over norm of the reference.
        cosine: Cosine similarity of the flattened outputs.
        sqnr_db: Signal to quantization noise ratio in decibels.
        allclose_fraction: Share of elements within atol + rtol * |reference|.
        equal_fraction: Share of equal elements.
        top1_agreement: Share of rows with the same arg max.
        top5_agreement: Mean overlap of the five largest per row.
        argmax_flips: Rows whose arg max changed, ties not counted.
        largest_flip_gap: Largest reference gap between the two candidates of such a row.
        tied_rows: Rows that only agree because of a tie.
        nonfinite_reference: NaN and infinite elements of the reference.
        nonfinite_candidate: NaN and infinite elements of the candidate.
        histogram: Counts of absolute errors by decade.
        histogram_edges: Powers of ten, one more than counts.
        elements: Elements compared; those not finite are in no error figure.
        candidate_shape: Only where the shapes differ; then there are no figures.
        balanced_relative_l2: Relative L2 error where every slice weighs the same.
        nonfinite_only_candidate: Elements that are finite in the reference alone.
        nonfinite_agreeing: Elements that are NaN, or the same infinity, on both sides.
        largest_tie_gap: Largest reference gap of the tied rows.
    """

    shape: Sizes
    reference_dtype: Text
    candidate_dtype: Text
    reference_amax: float | None = None
    max_abs_error: float | None = None
    mean_abs_error: float | None = None
    relative_l2: float | None = None
    cosine: float | None = None
    sqnr_db: float | None = None
    allclose_fraction: float | None = None
    equal_fraction: float | None = None
    top1_agreement: float | None = None
    top5_agreement: float | None = None
    argmax_flips: Count = 0
    largest_flip_gap: float | None = None
    tied_rows: Count = 0
    nonfinite_reference: Count = 0
    nonfinite_candidate: Count = 0
    histogram: tuple[Count, ...] = ()
    histogram_edges: tuple[Integer, ...] = ()
    elements: Count = 0
    candidate_shape: Sizes | None = None
    balanced_relative_l2: float | None = None
    nonfinite_only_candidate: Count = 0
    nonfinite_agreeing: Count = 0
    largest_tie_gap: float | None = None


class ToleranceEntry(ReportModel):
    """How far an output may be off, and who said so.

    Attributes:
        atol: Absolute part; a share of the reference's largest magnitude when ``scaled``.
        rtol: Part relative to each element.
        relative_l2: Most relative L2 error; null leaves the verdict to atol and rtol.
        scaled: See ``atol``.
        origin: Where the tolerance comes from.
        close_fraction: Share of elements that must be within atol + rtol * |reference|.
    """

    atol: float
    rtol: float
    relative_l2: float | None
    scaled: bool
    origin: Text
    close_fraction: float = 1.0


class NoiseFigureEntry(ReportModel):
    """One way in which an error can look unlike rounding.

    Attributes:
        name: Of the figure.
        value: As many times what rounding does.
        limit: Above this it is suspect.
        where: Slice of the output with the largest value, empty for the whole output.
    """

    name: Text
    value: float
    limit: float
    where: Text = ""


class NoiseEntry(ReportModel):
    """The candidate's error beside the error of rounding alone, on the same samples.

    Attributes:
        source: What produced the rounding error.
        relative_l2: Its relative L2 error.
        figures: Ways in which the error was compared.
        is_estimate: Estimated from rounded inputs, not emulated.
    """

    source: Text
    relative_l2: float
    figures: tuple[NoiseFigureEntry, ...] = ()
    is_estimate: bool = False


class OutputEntry(ReportModel):
    """Verdict over one output at one point.

    Attributes:
        name: Of the output.
        verdict: The gate's answer.
        reasons: Why, one sentence each.
        metrics: The figures.
        tolerance: What was allowed.
        noise_floor: Relative L2 error that rounding alone explains; null when not measured.
        noise: Figures behind the noise floor.
    """

    name: Text
    verdict: Verdict
    reasons: tuple[Text, ...] = ()
    metrics: MetricsEntry
    tolerance: ToleranceEntry
    noise_floor: float | None = None
    noise: NoiseEntry | None = None


class PointEntry(ReportModel):
    """All outputs at one set of shapes.

    Attributes:
        optimization_profile: Name of the optimization profile.
        point: ``min``, ``opt``, ``max``, ``batch 3``, ``batch independence``.
        shapes: Input shapes that were run.
        samples: How many samples were compared.
        outputs: One entry per output.
        reference_s: Seconds the reference ran.
        candidate_s: Seconds the candidate ran.
        problem: Why the point could not be run or compared at all; empty otherwise.
        verdict: The worst of its outputs.
    """

    optimization_profile: Text
    point: Text
    shapes: dict[Text, Sizes]
    samples: Count
    outputs: tuple[OutputEntry, ...]
    reference_s: Seconds
    candidate_s: Seconds
    problem: Text = ""
    verdict: Verdict


class TaskMetricEntry(ReportModel):
    """A task-level accuracy of both models.

    Attributes:
        name: Entry point or built-in name.
        reference: Value of the FP32 model.
        candidate: Value of the candidate.
        max_drop: Largest allowed fall.
        verdict: Pass or fail.
    """

    name: Text
    reference: float
    candidate: float
    max_drop: float
    verdict: Verdict


class ParitySection(ReportModel):
    """Outputs of the low-precision artefact against the FP32 ONNX Runtime baseline.

    Attributes:
        label: ``emulated on CPU`` or ``measured on <device>``.
        reference: File of the reference.
        candidate: File or folder of the candidate.
        data: Where the inputs came from.
        is_synthetic: The inputs were made up.
        points: Results in the order they were run.
        task_metric: Task accuracy, when it was asked for.
        notes: Remarks on the whole check.
        verdict: The worst of all.
    """

    label: Text
    reference: Text
    candidate: Text
    data: Text
    is_synthetic: bool
    points: tuple[PointEntry, ...]
    task_metric: TaskMetricEntry | None = None
    notes: tuple[Text, ...] = ()
    verdict: Verdict

    def find_worst_verdict(self) -> Verdict:
        """Return the worst verdict anywhere, so that a summary never hides a failure."""
        found = [self.verdict, worst_verdict([point.verdict for point in self.points])]
        found += [output.verdict for point in self.points for output in point.outputs]
        found += [Verdict.FAIL for point in self.points if point.problem]
        if self.task_metric is not None:
            found.append(self.task_metric.verdict)
        return worst_verdict(found)

    def describe_data(self) -> str:
        """Return where the inputs came from, and whether they were made up."""
        is_said = not self.is_synthetic or "synthetic" in self.data.lower()
        return self.data if is_said else f"{self.data} (synthetic)"

    def name_point(self, point: PointEntry) -> str:
        """Return ``max``, or ``large max`` where there are several optimization profiles."""
        prefix = f"{point.optimization_profile} " if self._has_several_profiles else ""
        return prefix + point.point

    @cached_property
    def _has_several_profiles(self) -> bool:
        return len({point.optimization_profile for point in self.points}) > 1


class SkippedParity(ReportModel):
    """Parity was not checked.

    Attributes:
        skipped: Why not.
    """

    skipped: Text


def _choose_section(value: Any) -> str:
    # A callable discriminator: a damaged section is judged as what it wants to be, once.
    skipped = isinstance(value, SkippedParity) or (isinstance(value, dict) and "skipped" in value)
    return "skipped" if skipped else "checked"


Parity = Annotated[
    Annotated[ParitySection, Tag("checked")] | Annotated[SkippedParity, Tag("skipped")],
    Discriminator(_choose_section),
]
