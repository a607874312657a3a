"""The calibrate step: from samples to the amax that a quantizing recipe needs."""

from __future__ import annotations

from dataclasses import replace

from trtdeploy.calibration.calibrating import (
    SYNTHETIC_SAMPLES,
    CalibrationObserver,
    CalibrationProgress,
    CalibrationRequest,
    calibrate_model,
)
from trtdeploy.calibration.methods import DEFAULT_METHODS, MethodChoice
from trtdeploy.calibration.summary import Calibration
from trtdeploy.config.calibration import CalibrationSection
from trtdeploy.config.recipe import Recipe
from trtdeploy.core.errors import UsageError
from trtdeploy.core.number_formats import INT8, QuantizedType
from trtdeploy.core.steps import ProgressEvent, StepRunner
from trtdeploy.graph.index import build_index
from trtdeploy.graph.model import OnnxModel
from trtdeploy.precision.quantization.planning import plan_quantization
from trtdeploy.precision.quantization.preparation import prepare_for_quantization
from trtdeploy.precision.typing_options import TypingOptions
from trtdeploy.precision.typing_source import TypingRequest, TypingSource

STEP = "calibrate"


def _choose_methods(section: CalibrationSection, kind: QuantizedType) -> MethodChoice:
    """Return how amax is found: as the deploy profile says, else as suits the type."""
    return MethodChoice(
        section.method or DEFAULT_METHODS[kind.name],
        tuple(section.methods.items()),
        section.percentile,
    )


def calibrate(source: TypingSource, sha256: str, steps: StepRunner) -> Calibration | None:
    """Measure what a quantizing recipe needs; None when it needs nothing.

    Args:
        source: Says what is quantized, and with which samples.
        sha256: Of the model's file.
        steps: Records the step.

    Raises:
        UsageError: There are no samples, and the recipe cannot do without.
        InputError: The samples cannot be used.
    """
    recipe = source.options.recipe
    if recipe.quantized is None:
        _refuse_samples(source.request, recipe)
        return None
    prepared = prepare_for_quantization(source.model, recipe)
    plan = plan_quantization(build_index(prepared), recipe, pins=source.options.pins)
    if not plan.measured:
        steps.skip(STEP, "nothing is quantized that has to be measured")
        return None
    return run_calibration(source, sha256, prepared, plan.measured, steps)


def run_calibration(
    source: TypingSource,
    sha256: str,
    prepared: OnnxModel,
    measured: tuple[str, ...],
    steps: StepRunner,
) -> Calibration:
    """Run the calibration, as the step that it is.

    Args:
        source: Holds the samples.
        sha256: Of the model's file.
        prepared: From ``prepare_for_quantization``.
        measured: The values that need an amax.
        steps: Records the step.

    Raises:
        UsageError: There are no samples, and they must not be made up.
        InputError: The samples cannot be used.
    """
    request, profile = source.request, source.profile
    kind = source.options.recipe.quantized or INT8
    made_up = request.synthetic_calibration or kind is not INT8
    with steps.run(STEP) as step:
        statistics = calibrate_model(
            CalibrationRequest(
                model=prepared,
                model_sha256=sha256,
                measured=measured,
                optimization_profile=source.sizes,
                data=request.calibration_data,
                preprocessing=profile.preprocessing,
                on_nonfinite=profile.calibration.nonfinite,
                synthetic_samples=SYNTHETIC_SAMPLES if made_up else 0,
            ),
            _make_observer(steps),
        )
        methods = _choose_methods(profile.calibration, kind)
        found = statistics.compute_amax(methods, kind)
        step.log = [*statistics.notes, *statistics.skipped]
        made = "made-up " if statistics.is_synthetic else ""
        step.detail = f"{len(found)} values, {statistics.samples} {made}samples, {methods.default}"
    return Calibration(statistics, methods, found)


def _refuse_samples(request: TypingRequest, recipe: Recipe) -> None:
    if request.calibration_data or request.synthetic_calibration:
        raise UsageError(
            f"recipe {recipe.name} quantizes nothing: there is nothing to calibrate",
            hint="Leave --calib out, or choose a profile with recipe int8 or fp8.",
        )


def _make_observer(steps: StepRunner) -> CalibrationObserver:
    def observe(state: CalibrationProgress) -> None:
        left = state.remaining_s
        detail = f"{state.samples_done} of {state.samples_total} samples"
        detail += "" if left is None else f", about {left:.0f} s left"
        fraction = state.samples_done / state.samples_total if state.samples_total else None
        steps.progress(ProgressEvent(STEP, detail, state.elapsed_s, fraction=fraction))

    return observe


def assume_amax(model: OnnxModel, options: TypingOptions) -> TypingOptions:
    """Return options with an amax of 1 for everything, to see a quantized graph before data."""
    recipe = options.recipe
    if recipe.quantized is None:
        return options
    prepared = prepare_for_quantization(model, recipe)
    measured = plan_quantization(build_index(prepared), recipe, pins=options.pins).measured
    return replace(options, amax=dict.fromkeys(measured, 1.0))
