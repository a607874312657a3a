"""Which nodes break a precision, and the smallest set to pin: the search on a real model."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from trtdeploy.calibration.runs import SampleSet, SyntheticSet
from trtdeploy.config.deploy_profile import ParitySection
from trtdeploy.config.loading import load_deploy_profile
from trtdeploy.config.optimization_profile import resolve_optimization_profiles
from trtdeploy.config.recipe import Recipe, find_recipe
from trtdeploy.core.arrays import Array, Feeds
from trtdeploy.core.steps import ProgressCallback, ProgressEvent, StepRunner, ignore_progress
from trtdeploy.graph.index import build_index
from trtdeploy.graph.loading import load_model
from trtdeploy.graph.model_inputs import describe_inputs
from trtdeploy.parity.border import Border
from trtdeploy.parity.running import open_reference
from trtdeploy.parity.task_metric import iterate_labelled
from trtdeploy.parity.tolerance import make_tolerance_provider
from trtdeploy.pinning.candidate import PinningOutcome
from trtdeploy.pinning.candidates import join_candidates
from trtdeploy.pinning.evaluator import EmulationEvaluator
from trtdeploy.pinning.report import PinningReport
from trtdeploy.pinning.request import PinRequest, read_target
from trtdeploy.pinning.runs import RecordedRuns
from trtdeploy.pinning.search import SEARCH_RUNS, PinSearch, RunObserver
from trtdeploy.pinning.subject import PinningSubject, prepare_subject
from trtdeploy.pinning.target import Target, TargetJudge, parse_target
from trtdeploy.precision.typing_options import TypingOptions
from trtdeploy.precision.typing_source import TypingSource
from trtdeploy.samples.opening import open_samples

_SYNTHETIC_RUNS = 4
_STEP = "search"
_LARGE_SHARE = 0.5


def find_pins(request: PinRequest, progress: ProgressCallback = ignore_progress) -> PinningReport:
    """Search for the smallest set of nodes to pin; see ``PinRequest``.

    Each run types, emulates and runs the model anew, one after the other, in a temporary folder.

    Raises:
        TrtdeployError: A file cannot be used, or the request makes no sense. A target that cannot
            be reached is no error: the report says so.
    """
    resolved = load_deploy_profile(request.profile, request.overrides)
    profile = resolved.profile
    # a weakly typed graph rounds nothing that an emulation could see: the strong form is searched
    recipe = find_recipe(profile.recipe)
    options = replace(TypingOptions.from_profile(profile, request.pins), recipe=recipe)
    target = read_target(request, recipe)
    model = load_model(request.model)
    sizes = resolve_optimization_profiles(
        describe_inputs(model), resolved.build_shape_requests(request.shapes)
    )[0]
    source = TypingSource(request, profile, options, model, sizes)
    steps = StepRunner(progress)
    subject = prepare_subject(source, steps)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trtdeploy-pin-")))
        found, border = _find_feeds(source, request), Border(options.border_dtype)
        # values that the typed model's inputs can hold
        rounded = ((border.round_feeds(feeds), labels) for feeds, labels in found.runs)
        runs = RecordedRuns(folder)
        with ExitStack() as reference:
            runs.record(rounded, open_reference(reference, model, folder), found.most)
        outcome = _search(request, profile.parity, subject, runs, target, steps)
    return PinningReport(
        model=request.model.name,
        deploy_profile=request.profile,
        recipe=recipe.name,
        target=target or f"{request.metric} may fall by {request.max_drop:g}",
        outcome=outcome,
        precision=subject.pin_precision,
        reasons=subject.explain(outcome),
        quantized_share=(
            subject.measure_share(sizes.opt_shapes, ()),
            subject.measure_share(sizes.opt_shapes, outcome.pinned),
        ),
        samples=f"{len(runs)} of {found.description}",
        notes=(*subject.notes, *found.notes, *_explain_floor(outcome, recipe)),
    )


@dataclass(frozen=True)
class _FeedSource:
    """What is run: feeds and their labels, in a stream."""

    runs: Iterable[tuple[Feeds, Array | None]]
    description: str
    most: int | None
    notes: tuple[str, ...] = ()


def _find_feeds(source: TypingSource, request: PinRequest) -> _FeedSource:
    """Find labelled samples for a metric, else samples, else some of the calibration's."""
    profile, inputs = source.profile, source.model.input_specs()
    if request.metric and request.data is not None:
        samples = open_samples(request.data, inputs, profile.preprocessing)
        labelled = iterate_labelled(samples, request.data, source.sizes.opt_shapes)
        return _FeedSource(labelled, str(request.data), None)
    path = request.data or next(iter(request.calibration_samples), None)
    if path is None:
        made = SyntheticSet(source.model, source.sizes, _SYNTHETIC_RUNS)
        runs = ((run.feeds, None) for run in made.iterate_runs())
        warning = "compared on made-up inputs: give real ones with --data"
        return _FeedSource(runs, made.description, request.samples, (warning,))
    skip = profile.calibration.nonfinite
    found = SampleSet(path, inputs, source.sizes, profile.preprocessing, skip)
    runs = ((run.feeds, None) for run in found.iterate_runs())
    same = "compared on samples of the calibration: --data gives others"
    notes = () if request.data is not None else (same,)
    return _FeedSource(runs, found.description, request.samples, notes)


def _search(
    request: PinRequest,
    parity: ParitySection,
    subject: PinningSubject,
    runs: RecordedRuns,
    target: Target | None,
    steps: StepRunner,
) -> PinningOutcome:
    judge = TargetJudge(
        target or parse_target(""),
        make_tolerance_provider(subject.options.recipe, atol=parity.atol, rtol=parity.rtol),
    )
    candidates = join_candidates(subject.candidates, request.most_runs - SEARCH_RUNS)
    evaluator = EmulationEvaluator(subject, candidates, runs, judge, request)
    with steps.run(_STEP) as step:
        search = PinSearch(evaluator, request.most_runs, _make_observer(steps))
        op_types = {node.name: node.op_type for _, node in build_index(subject.prepared).nodes()}
        outcome = search.refine(search.run(candidates), op_types)
        step.detail = f"{search.runs} runs"
    return outcome


def _make_observer(steps: StepRunner) -> RunObserver:
    started = time.perf_counter()

    def observe(done: int, most: int) -> None:
        elapsed_s = time.perf_counter() - started
        detail = f"{done} of at most {most} runs"
        if done:
            detail += f", about {elapsed_s / done * (most - done):.0f} s left"
        steps.progress(ProgressEvent(_STEP, detail, elapsed_s, fraction=done / most))

    return observe


def _explain_floor(outcome: PinningOutcome, recipe: Recipe) -> tuple[str, ...]:
    """Say when not quantization is to blame, but what it stands in."""
    floor = outcome.all_pinned
    if recipe.quantized is None or recipe.low is None or floor is None:
        if outcome.reached:
            return ()
        return ("not even pinning every node reaches the target",)
    low = recipe.low.label
    way_out = f"--set recipe=fp16 shows what {low} breaks; give those pins here with --pin"
    if not outcome.reached:
        return (
            f"no set reaches the target: with nothing quantized, {low} alone misses it. {way_out}, "
            "or use --set recipe=int8-fp32",
        )
    if floor.worst_noise >= _LARGE_SHARE * outcome.plain.worst_noise:
        return (f"{low}, not quantization, makes most of the error. {way_out}",)
    return ()
