"""What a parity check found, as ``report.json`` stores it: from metrics up to the report.

Verdicts of points and of the whole are derived: a report cannot be read, or made, that says
something else than its outputs do.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

logger = logging.getLogger("trtdeploy.parity")


def _read_figure(value: Any) -> Any:
    return math.nan if value is None else value


Figure = Annotated[
    float,
    BeforeValidator(_read_figure),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "null"}]}),
]
"""May be infinite; JSON has no such number: it is null in a file, and NaN for who reads that."""


class Verdict(str, Enum):
    """Answer of the gate, best first; suspect is within tolerance, and no rounding."""

    PASS = "pass"
    SUSPECT = "suspect"
    FAIL = "fail"


@dataclass(frozen=True)
class OutputMetrics:
    """How one output of the candidate differs from the reference, over all its elements.

    Formulas and sources stand in ``parity/metrics.py``. A figure that does not exist for the
    output (cosine of zeros, top-1 of a scalar, errors of booleans) is None, never NaN.

    Attributes:
        shape: Shape of the reference.
        reference_dtype: Element type, numpy's name.
        candidate_dtype: Element type, numpy's name; a difference is reported, not an error.
        reference_amax: Largest finite magnitude of the reference.
        max_abs_error: In units of the output.
        mean_abs_error: In units of the output.
        relative_l2: Norm of the difference over norm of the reference.
        cosine: Cosine similarity of the flattened outputs.
        sqnr_db: Signal to quantization noise ratio in decibels.
        allclose_fraction: Share of elements within atol + rtol * |reference|.
        equal_fraction: Share of equal elements (integers, booleans, strings).
        top1_agreement: Share of rows with the same arg max; ties count as the same.
        top5_agreement: Mean overlap of the five largest per row.
        argmax_flips: Rows whose arg max changed, ties not counted.
        largest_flip_gap: Largest reference gap between the two candidates of such a row.
        tied_rows: Rows that only agree because of a tie.
        nonfinite_reference: NaN and infinite elements of the reference.
        nonfinite_candidate: NaN and infinite elements of the candidate.
        histogram: Counts of |error| by decade; ``histogram_edges`` are the powers of ten.
        histogram_edges: Exponents, one more than counts.
        elements: Elements compared; those not finite are left out of every error figure.
        candidate_shape: Only where the shapes differ; then there are no figures.
        balanced_relative_l2: Relative L2 error where every slice weighs the same, however small
            its values: scores beside pixel coordinates count.
        nonfinite_only_candidate: Elements that are finite in the reference alone.
        nonfinite_agreeing: Elements that are NaN, or the same infinity, on both sides.
        largest_tie_gap: Largest reference gap of the tied rows.
    """

    shape: tuple[int, ...]
    reference_dtype: str
    candidate_dtype: str
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
    argmax_flips: int = 0
    largest_flip_gap: float | None = None
    tied_rows: int = 0
    nonfinite_reference: int = 0
    nonfinite_candidate: int = 0
    histogram: tuple[int, ...] = ()
    histogram_edges: tuple[int, ...] = ()
    elements: int = 0
    candidate_shape: tuple[int, ...] | None = None
    balanced_relative_l2: float | None = None
    nonfinite_only_candidate: int = 0
    nonfinite_agreeing: int = 0
    largest_tie_gap: float | None = None


@dataclass(frozen=True)
class Tolerance:
    """How far an output may be off.

    Attributes:
        atol: Absolute part, as a share of the reference's largest magnitude when ``scaled``.
        rtol: Part relative to each element.
        relative_l2: Most relative L2 error; None leaves the verdict to atol and rtol.
        scaled: ``atol`` is a share of the reference's amax instead of a plain number.
        origin: Where it comes from, e.g. ``recipe fp16`` or ``profile parity.rtol``.
        close_fraction: Share of elements that must be within atol + rtol * |reference|.
    """

    atol: Figure
    rtol: Figure
    relative_l2: float | None
    scaled: bool
    origin: str
    close_fraction: float = 1.0


@dataclass(frozen=True)
class NoiseFigure:
    """One way in which an error can look unlike rounding.

    Attributes:
        name: ``error``, ``slice error``, ``bias``, ``trend`` or ``expected output``.
        value: As many times what rounding does.
        limit: Above this the error is suspect.
        where: Slice of the output with the largest value, empty for the whole output.
    """

    name: str
    value: Figure
    limit: Figure
    where: str = ""


@dataclass(frozen=True)
class NoiseComparison:
    """The candidate's error beside the error of rounding alone, on the same samples.

    Attributes:
        source: What produced the rounding error.
        relative_l2: What rounding alone is off by: the noise floor.
        figures: Formulas stand in ``parity/noise_figures.py``.
        is_estimate: The rounding error was estimated from rounded inputs, not emulated: enough for
            a suspicion, not for a failure.
    """

    source: str
    relative_l2: Figure
    figures: tuple[NoiseFigure, ...] = ()
    is_estimate: bool = False


@dataclass(frozen=True)
class OutputComparison:
    """Verdict over one output at one point.

    Attributes:
        verdict: Pass, suspect or fail.
        reasons: Why, one sentence each; also notes of a pass (ties, changed types).
        tolerance: What was allowed.
        noise_floor: Relative L2 error that rounding alone explains; None when not measured.
        noise: Figures behind the noise floor.
    """

    name: str
    verdict: Verdict
    reasons: tuple[str, ...]
    metrics: OutputMetrics
    tolerance: Tolerance
    noise_floor: float | None = None
    noise: NoiseComparison | None = None


@dataclass(frozen=True)
class PointResult:
    """All outputs at one set of shapes.

    Attributes:
        point: ``min``, ``opt``, ``max``, ``batch 3``, ``batch independence``.
        shapes: Input shapes that were run.
        samples: How many samples were compared.
        outputs: One entry per output.
        reference_s: Seconds the reference ran.
        candidate_s: Seconds the candidate ran.
        problem: Why the point could not be run or compared at all; empty otherwise.
        verdict: The worst of its outputs; a problem fails.
    """

    optimization_profile: str
    point: str
    shapes: Mapping[str, tuple[int, ...]]
    samples: int
    outputs: tuple[OutputComparison, ...]
    reference_s: float
    candidate_s: float
    problem: str = ""
    verdict: Verdict = field(init=False, default=Verdict.FAIL)

    def __post_init__(self) -> None:
        """Derive the verdict; times of a damaged file would break JUnit files."""
        if not (0 <= self.reference_s < math.inf and 0 <= self.candidate_s < math.inf):
            raise ValueError("reference_s and candidate_s are no times")
        found = [output.verdict for output in self.outputs]
        _derive(self, Verdict.FAIL if self.problem else worst_verdict(found))


@dataclass(frozen=True)
class TaskMetric:
    """A task-level accuracy of both models.

    Attributes:
        name: Entry point or built-in name.
        reference: Value of the FP32 model.
        candidate: Value of the model under test.
        max_drop: Largest allowed fall.
        verdict: Pass or fail.
    """

    name: str
    reference: Figure
    candidate: Figure
    max_drop: Figure
    verdict: Verdict


@dataclass(frozen=True)
class ParityReport:
    """Outcome of a parity check.

    Attributes:
        label: ``emulated on CPU`` or ``measured on <device>``; never anything vaguer.
        reference: File of the FP32 baseline.
        candidate: File or folder of the candidate.
        data: Where the inputs came from.
        is_synthetic: The inputs were made up.
        points: Results in the order they were run.
        task_metric: Task accuracy, when it was asked for.
        notes: Remarks on the whole check.
        verdict: The worst of all; an empty check fails.
    """

    label: str
    reference: str
    candidate: str
    data: str
    is_synthetic: bool
    points: tuple[PointResult, ...]
    task_metric: TaskMetric | None = None
    notes: tuple[str, ...] = ()
    verdict: Verdict = field(init=False, default=Verdict.FAIL)

    def __post_init__(self) -> None:
        """Derive the verdict."""
        found = [point.verdict for point in self.points]
        if self.task_metric is not None:
            found.append(self.task_metric.verdict)
        _derive(self, worst_verdict(found))

    def is_accepted(self, *, strict: bool = False) -> bool:
        """Tell whether the gate lets the candidate through; see ``accept_verdict``."""
        return accept_verdict(self.verdict, strict=strict)

    def describe_data(self) -> str:
        """Return where the inputs came from, and whether they were made up."""
        is_said = not self.is_synthetic or "synthetic" in self.data.lower()
        return self.data if is_said else f"{self.data} (synthetic)"

    def name_point(self, point: PointResult) -> str:
        """Return ``max``, or ``large max`` where there are several optimization profiles."""
        several = len({each.optimization_profile for each in self.points}) > 1
        return f"{point.optimization_profile} {point.point}" if several else point.point

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as ``report.json`` has it under ``parity``."""
        return asdict(self)


@dataclass(frozen=True)
class SkippedParity:
    """Parity was not checked: why not."""

    skipped: str


def accept_verdict(verdict: Verdict, *, strict: bool) -> bool:
    """Tell whether a verdict passes the gate: the one rule of API and command line.

    What is within tolerance, but worse than rounding explains, passes with a warning in the log: it
    may be a bug, and someone should look. ``strict`` refuses such a suspicion.
    """
    if verdict is Verdict.SUSPECT and not strict:
        logger.warning(
            "warning: parity is accepted within tolerance, but worse than rounding explains: look "
            "at the report, or refuse that with --strict"
        )
        return True
    return verdict is Verdict.PASS


def worst_verdict(verdicts: list[Verdict]) -> Verdict:
    """Return the worst of some verdicts; nothing compared is a failure, not a pass."""
    order = list(Verdict)
    return max(verdicts, key=order.index, default=Verdict.FAIL)


def _derive(result: PointResult | ParityReport, verdict: Verdict) -> None:
    object.__setattr__(result, "verdict", verdict)  # frozen from here on
