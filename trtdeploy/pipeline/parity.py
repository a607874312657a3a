"""The parity step: reference and candidate opened, fed and compared."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from trtdeploy.backends.onnxruntime_session import OnnxRuntimeSession
from trtdeploy.core.errors import CompileError, UsageError
from trtdeploy.core.tensors import Feeds, FeedsMaker, Runner
from trtdeploy.graph.index import build_index
from trtdeploy.graph.loading import load_model
from trtdeploy.graph.model import OnnxModel
from trtdeploy.graph.normalization import normalize_model
from trtdeploy.graph.saving import save_model
from trtdeploy.graph.structure import has_same_structure
from trtdeploy.parity.batch import BatchLayout, find_batch_layout
from trtdeploy.parity.checking import Observer, ParityPlan, ParitySubject, check_parity
from trtdeploy.parity.comparison import ComparisonRules
from trtdeploy.parity.noise import NoiseSource, expect_emulation, round_inputs
from trtdeploy.parity.noise_figures import (
    EMULATED_LIMITS,
    MEASURED_LIMITS,
    SHOWN_ONLY,
    NoiseLimits,
)
from trtdeploy.parity.points import (
    ParityPoint,
    find_independence_points,
    find_points,
    with_batch,
)
from trtdeploy.parity.result import ParityReport
from trtdeploy.parity.samples import open_samples
from trtdeploy.parity.samples_source import Batch, SampleSource
from trtdeploy.parity.synthetic import make_synthetic_feeds
from trtdeploy.parity.tolerance import make_tolerance_provider
from trtdeploy.pipeline.parity_request import ParityRequest
from trtdeploy.pipeline.task_accuracy import add_task_metric
from trtdeploy.precision.emulation import emulate_model
from trtdeploy.precision.recipe import RECIPES, Recipe, make_weak_recipe
from trtdeploy.precision.typed_model import apply_recipe

EMULATED = "emulated on CPU"
MOST_ELEMENTS = 20_000_000
"""Input elements per run; YOLOv8n needs about 90 bytes for each, twice over."""


@dataclass(frozen=True)
class _Inputs:
    """Where feeds come from."""

    make_feeds: FeedsMaker
    description: str
    is_synthetic: bool
    notes: tuple[str, ...]


def run_parity(request: ParityRequest, progress: Observer | None = None) -> ParityReport:
    """Compare candidate and reference at every point; see ``ParityRequest``.

    Raises:
        TrtdeployError: A model cannot be opened, or the data cannot be read.
    """
    if request.judgement.metric and request.data is None:
        raise UsageError(
            f"metric {request.judgement.metric!r} needs samples with labels",
            hint="Give --data with an array 'labels' beside the inputs.",
        )
    model = load_model(request.reference)
    inputs = _find_inputs(request, model)
    batch = find_batch_layout(model.input_specs(), model.output_specs())
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        reference = open_reference(stack, model, folder)
        candidate, label = _open_candidate(stack, request, folder)
        noise = _find_noise(stack, request, model, reference, folder)
        profiles = request.optimization_profiles
        judgement = request.judgement
        points, notes = _fit_memory(find_points(profiles, batch), batch)
        plan = ParityPlan(
            points=points,
            tolerance=make_tolerance_provider(
                request.recipe, atol=judgement.atol, rtol=judgement.rtol
            ),
            rules=ComparisonRules(noise=noise, limits=_choose_limits(request)),
            match_rows=judgement.match_rows,
            batch=batch,
            independence=find_independence_points(profiles, batch),
        )
        subject = ParitySubject(
            label=label,
            reference=request.reference.name,
            candidate=request.candidate.name,
            data=inputs.description,
            is_synthetic=inputs.is_synthetic,
            notes=(*inputs.notes, *notes),
        )
        report = check_parity(
            reference,
            candidate,
            plan=plan,
            make_feeds=inputs.make_feeds,
            subject=subject,
            progress=progress,
        )
        return add_task_metric(report, request, reference, candidate, model)


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


def _find_inputs(request: ParityRequest, model: OnnxModel) -> _Inputs:
    if request.data is not None:
        source = open_samples(
            request.data,
            model.input_specs(),
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
        return _Inputs(read, source.description, False, notes)
    index = build_index(normalize_model(model))

    def make_up(
        shapes: Mapping[str, tuple[int, ...]], values: Mapping[str, tuple[int, ...]]
    ) -> Iterator[Feeds]:
        return iter([make_synthetic_feeds(index, shapes, values).feeds])

    first = request.optimization_profiles[0]
    shapes = {name: sizes.opt for name, sizes in first.shapes.items()}
    values = {name: contents.opt for name, contents in first.values.items()}
    sample = make_synthetic_feeds(index, shapes, values)
    return _Inputs(make_up, sample.description, True, sample.notes)


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
    if request.engine_folder is not None and request.open_engine is not None:
        engine = stack.enter_context(request.open_engine(request.engine_folder))
        return engine.run, f"measured on {engine.device}"
    typed = load_model(request.candidate)
    return _open_emulated(stack, typed, folder / "candidate.onnx"), EMULATED


def _open_emulated(stack: ExitStack, typed: OnnxModel, path: Path) -> Runner:
    save_model(emulate_model(typed), path)
    return stack.enter_context(OnnxRuntimeSession(path, optimize=False)).run


def _choose_limits(request: ParityRequest) -> NoiseLimits:
    if request.open_engine is not None:
        return MEASURED_LIMITS
    return SHOWN_ONLY if request.is_ours else EMULATED_LIMITS


def _find_noise(
    stack: ExitStack, request: ParityRequest, model: OnnxModel, reference: Runner, folder: Path
) -> NoiseSource | None:
    """Choose what shows how far rounding alone leads: see ``trtdeploy.parity.noise``."""
    recipe = RECIPES.get(request.recipe)
    if recipe is None or request.is_ours or not _can_repeat(recipe, request):
        return round_inputs(reference, request.recipe, seeds=1)
    typed = apply_recipe(
        model,
        make_weak_recipe(recipe) if request.is_weak else recipe,
        pins=request.pins,
        keep_io=request.keep_io,
        thresholds=request.thresholds,
    ).model
    expected = _open_emulated(stack, typed, folder / "expected.onnx")
    # the very graph this recipe makes of the reference must also give the very same bits
    same = request.open_engine is None and has_same_structure(typed, load_model(request.candidate))
    return expect_emulation(expected, request.recipe, same_arithmetic=same)


def _can_repeat(recipe: Recipe, request: ParityRequest) -> bool:
    """True when the recipe narrows something, and what it needs to do so again is known."""
    if recipe.quantized is not None:
        return request.thresholds is not None
    return recipe.low is not None


def describe_verdict(report: ParityReport) -> str:
    """Return one line: verdict, label, how many comparisons."""
    count = sum(len(point.outputs) for point in report.points)
    plural = "" if count == 1 else "s"
    made_up = ", synthetic inputs" if report.is_synthetic else ""
    return f"{report.verdict.value}, {report.label}, {count} comparison{plural}{made_up}"
