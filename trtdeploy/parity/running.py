"""Runs a parity check: opens reference and candidate, chooses inputs and what rounding may do."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from trtdeploy.backends.onnxruntime.session import OnnxRuntimeSession
from trtdeploy.config.batch_layout import BatchLayout, find_free_batch
from trtdeploy.core.arrays import Feeds, FeedsMaker, Runner
from trtdeploy.core.errors import CompileError, UsageError
from trtdeploy.graph.index import build_index
from trtdeploy.graph.model import OnnxModel
from trtdeploy.graph.normalization import normalize_model
from trtdeploy.graph.saving import save_model
from trtdeploy.graph.structure import has_same_structure
from trtdeploy.parity.border import Border
from trtdeploy.parity.checking import Observer, check_parity
from trtdeploy.parity.comparison import ComparisonRules
from trtdeploy.parity.noise import NoiseSource, expect_emulation, round_inputs
from trtdeploy.parity.noise_figures import (
    EMULATED_LIMITS,
    MEASURED_LIMITS,
    SHOWN_ONLY,
    NoiseLimits,
)
from trtdeploy.parity.point_check import ParityPlan
from trtdeploy.parity.points import (
    ParityPoint,
    find_independence_points,
    find_points,
    with_batch,
)
from trtdeploy.parity.request import ParityRequest
from trtdeploy.parity.result import ParityReport
from trtdeploy.parity.task_metric import iterate_labelled, measure_task_metric
from trtdeploy.parity.tolerance import make_tolerance_provider
from trtdeploy.precision.emulation import emulate_model
from trtdeploy.precision.typed_model import apply_recipe
from trtdeploy.samples.opening import open_samples
from trtdeploy.samples.source import Batch, SampleSource
from trtdeploy.samples.synthetic.making import make_synthetic_feeds

EMULATED = "emulated on CPU"
MOST_ELEMENTS = 20_000_000
"""Input elements per run; YOLOv8n needs about 90 bytes for each, twice over."""


def run_parity(request: ParityRequest, progress: Observer | None = None) -> ParityReport:
    """Compare candidate and reference at every point; see ``ParityRequest``.

    Raises:
        TrtdeployError: A model cannot be opened, or the data cannot be read.
    """
    if request.metric and request.data is None:
        raise UsageError(
            f"metric {request.metric!r} needs samples with labels",
            hint="Give --data with an array 'labels' beside the inputs.",
        )
    model, profiles = request.reference, request.optimization_profiles
    make_feeds, subject = _find_inputs(request)
    batch = find_free_batch(model.input_specs(), model.output_specs())
    points, notes = _fit_memory(find_points(profiles, batch), batch)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        reference = open_reference(stack, model, folder)
        candidate, label = _open_candidate(stack, request, folder)
        noise = _find_noise(stack, request, reference, folder)
        plan = ParityPlan(
            points=points,
            tolerance=make_tolerance_provider(
                request.options.recipe, atol=request.atol, rtol=request.rtol
            ),
            rules=ComparisonRules(noise=noise, limits=_choose_limits(request)),
            match_rows=request.match_rows,
            batch=batch,
            independence=find_independence_points(profiles, batch),
        )
        report = check_parity(
            reference,
            candidate,
            plan=plan,
            make_feeds=make_feeds,
            subject=replace(subject, label=label, notes=(*subject.notes, *notes)),
            progress=progress,
        )
        return _add_task_metric(report, request, reference, candidate)


def _add_task_metric(
    report: ParityReport, request: ParityRequest, reference: Runner, candidate: Runner
) -> ParityReport:
    """Return the report with the task metric, if one was asked for."""
    if not request.metric or request.data is None:
        return report
    source = open_samples(request.data, request.reference.input_specs(), request.preprocessing)
    samples = iterate_labelled(source, request.data, request.optimization_profiles[0].opt_shapes)
    metric = measure_task_metric(
        request.metric, reference, candidate, samples, max_drop=request.max_drop
    )
    return replace(report, task_metric=metric)


def _fit_memory(
    points: tuple[ParityPoint, ...], batch: BatchLayout | None
) -> tuple[tuple[ParityPoint, ...], tuple[str, ...]]:
    """Make the batch of huge points smaller, and say so: a laptop must survive the check."""
    fitted, notes = [], []
    for point in points:
        elements = sum(math.prod(shape) for shape in point.shapes.values())
        size = 1 if batch is None else _find_batch_size(point, batch)
        wanted = max(size * MOST_ELEMENTS // max(elements, 1), 1)
        if batch is None or wanted >= size:
            fitted.append(point)
            continue
        fitted.append(replace(with_batch(point, batch, wanted), name=point.name))
        notes.append(
            f"point {point.name} was run with batch {wanted} instead of {size}: its inputs hold "
            f"{elements:,} elements, and {MOST_ELEMENTS:,} are run at once on a CPU"
        )
    return tuple(fitted), tuple(notes)


def _find_batch_size(point: ParityPoint, batch: BatchLayout) -> int:
    return next((point.shapes[n][axis] for n, axis in batch.inputs.items() if n in point.shapes), 1)


def _find_inputs(request: ParityRequest) -> tuple[FeedsMaker, ParityReport]:
    """Return feeds, rounded as the candidate's own inputs have to be, and what is compared."""
    make_feeds, subject = _open_inputs(request)
    border = Border(request.options.border_dtype)
    if border.dtype is None:
        return make_feeds, subject

    def make_rounded(
        shapes: Mapping[str, tuple[int, ...]], values: Mapping[str, tuple[int, ...]]
    ) -> Iterator[Feeds]:
        return map(border.round_feeds, make_feeds(shapes, values))

    note = (
        f"inputs and outputs are {border.dtype.label}, as precision.io asks: both models were fed "
        "values of that type, and outputs were compared in FP32"
    )
    return make_rounded, replace(subject, notes=(*subject.notes, note))


def _open_inputs(request: ParityRequest) -> tuple[FeedsMaker, ParityReport]:
    names = request.reference.path.name, request.candidate.path.name
    if request.data is not None:
        source = open_samples(
            request.data,
            request.reference.input_specs(),
            request.preprocessing,
            on_nonfinite=request.on_nonfinite,
        )

        def read(
            shapes: Mapping[str, tuple[int, ...]], _: Mapping[str, tuple[int, ...]]
        ) -> Iterator[Feeds]:
            return (batch.feeds for batch in _take_samples(source, shapes, request.most_samples))

        notes = tuple(source.notes)
        if request.most_samples is not None and request.most_samples < len(source):
            notes += (f"only the first {request.most_samples} samples were run",)
        return read, ParityReport("", *names, source.description, False, (), notes=notes)
    index = build_index(normalize_model(request.reference))

    def make_up(
        shapes: Mapping[str, tuple[int, ...]], values: Mapping[str, tuple[int, ...]]
    ) -> Iterator[Feeds]:
        return iter([make_synthetic_feeds(index, shapes, values).feeds])

    first = request.optimization_profiles[0]
    values = {name: contents.opt for name, contents in first.values.items()}
    sample = make_synthetic_feeds(index, first.opt_shapes, values)
    return make_up, ParityReport("", *names, sample.description, True, (), notes=sample.notes)


def _take_samples(
    source: SampleSource, shapes: Mapping[str, tuple[int, ...]], most: int | None
) -> Iterator[Batch]:
    """Yield batches until ``most`` samples are reached; a batch is never cut."""
    taken = 0
    for batch in source.iterate_batches(shapes):
        yield batch
        taken += len(batch.samples)
        if most is not None and taken >= most:
            return


def open_reference(stack: ExitStack, model: OnnxModel, folder: Path) -> Runner:
    """Open the baseline with ONNX Runtime's optimisations off, which may not even be exact."""
    try:
        session = OnnxRuntimeSession(model.path, optimize=False)
    except CompileError:
        repaired = normalize_model(model)  # duplicate node names, for instance
        if not repaired.changes:
            raise
        save_model(repaired, folder / "reference.onnx")
        session = OnnxRuntimeSession(folder / "reference.onnx", optimize=False)
    return stack.enter_context(session).run


def _open_candidate(stack: ExitStack, request: ParityRequest, folder: Path) -> tuple[Runner, str]:
    border = Border(request.options.border_dtype)
    if request.open_engine is not None:
        engine = stack.enter_context(request.open_engine())
        return border.open_runner(engine), f"measured on {engine.device}"
    return _open_emulated(stack, request.candidate, border, folder / "candidate.onnx"), EMULATED


def _open_emulated(stack: ExitStack, typed: OnnxModel, border: Border, path: Path) -> Runner:
    save_model(emulate_model(typed), path)
    return border.open_runner(stack.enter_context(OnnxRuntimeSession(path, optimize=False)))


def _choose_limits(request: ParityRequest) -> NoiseLimits:
    if request.open_engine is not None:
        return MEASURED_LIMITS
    return SHOWN_ONLY if request.is_ours else EMULATED_LIMITS


def _find_noise(
    stack: ExitStack, request: ParityRequest, reference: Runner, folder: Path
) -> NoiseSource:
    """Choose what shows how far rounding alone leads: see ``trtdeploy.parity.noise``."""
    options = request.options
    if request.is_ours or not options.can_repeat:
        return round_inputs(reference, options.recipe, seeds=1)
    typed = apply_recipe(request.reference, options).model
    border = Border(options.border_dtype)
    expected = _open_emulated(stack, typed, border, folder / "expected.onnx")
    # the very graph this recipe makes of the reference must also give the very same bits
    same = request.open_engine is None and has_same_structure(typed, request.candidate)
    return expect_emulation(expected, options.recipe, same_arithmetic=same)


def describe_verdict(report: ParityReport) -> str:
    """Return one line: verdict, label, how many comparisons."""
    count = sum(len(point.outputs) for point in report.points)
    plural = "" if count == 1 else "s"
    made_up = ", synthetic inputs" if report.is_synthetic else ""
    return f"{report.verdict.value}, {report.label}, {count} comparison{plural}{made_up}"
