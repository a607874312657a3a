"""The calibrate step: from samples to the thresholds a quantizing recipe needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trtdeploy.config.calibration import CalibrationSection
from trtdeploy.config.deploy_profile import DeployProfile
from trtdeploy.config.device import DeviceSpec
from trtdeploy.core.errors import NotPossibleError, UsageError
from trtdeploy.core.ranges import OptimizationProfile
from trtdeploy.core.steps import ProgressEvent, StepRunner
from trtdeploy.graph.index import build_index
from trtdeploy.graph.model import OnnxModel
from trtdeploy.pipeline.calibrating import (
    SYNTHETIC_SAMPLES,
    CalibrationProgress,
    CalibrationRequest,
    calibrate_model,
)
from trtdeploy.pipeline.request import BuildRequest
from trtdeploy.precision.calibration.methods import DEFAULT_METHODS, MethodChoice
from trtdeploy.precision.calibration.statistics import CalibrationStatistics
from trtdeploy.precision.calibration.summary import summarize_calibration
from trtdeploy.precision.pins import parse_pin
from trtdeploy.precision.quantization.audit import audit_quantization
from trtdeploy.precision.quantization.planning import plan_quantization
from trtdeploy.precision.quantization.preparation import prepare_for_quantization
from trtdeploy.precision.quantization.report import QuantizationReport
from trtdeploy.precision.quantization.scheme import INT8
from trtdeploy.precision.recipe import Recipe, find_recipe, make_weak_recipe
from trtdeploy.precision.typed_model import TypedModel

STEP = "calibrate"


@dataclass(frozen=True)
class Calibration:
    """Thresholds of one build, and where they come from.

    Attributes:
        statistics: What the samples showed.
        methods: How thresholds follow from it.
        thresholds: Clipping magnitude by value name.
    """

    statistics: CalibrationStatistics
    methods: MethodChoice
    thresholds: Mapping[str, float]


def choose_recipe(profile: DeployProfile) -> Recipe:
    """Return the recipe of a deploy profile, in the form its kind of typing needs.

    Raises:
        NotPossibleError: There is no such recipe, or it needs a strongly typed network.
    """
    recipe = find_recipe(profile.recipe)
    return make_weak_recipe(recipe) if profile.typing == "weak" else recipe


def choose_methods(section: CalibrationSection, recipe: Recipe) -> MethodChoice:
    """Return how thresholds are found: as the deploy profile says, else as suits the type."""
    kind = recipe.quantized or INT8
    return MethodChoice(
        section.method or DEFAULT_METHODS[kind.name],
        tuple(section.methods.items()),
        section.percentile,
    )


def calibrate(
    model: OnnxModel,
    sha256: str,
    sizes: OptimizationProfile,
    profile: DeployProfile,
    request: BuildRequest,
    steps: StepRunner,
) -> Calibration | None:
    """Measure what a quantizing recipe needs; None when it needs nothing.

    Args:
        model: As loaded.
        sha256: Of its file.
        sizes: The usual ones are run.
        profile: Says what is quantized and how thresholds are found.
        request: Holds the samples.
        steps: Records the step.

    Raises:
        UsageError: There are no samples, and the recipe cannot do without.
        InputError: The samples cannot be used.
    """
    recipe = choose_recipe(profile)
    if recipe.quantized is None:
        _refuse_samples(request, recipe)
        return None
    prepared = prepare_for_quantization(model, recipe)
    pins = (*profile.precision.list_pins(), *request.pins)
    measured = plan_quantization(build_index(prepared), recipe, pins=pins).measured
    if not measured:
        steps.skip(STEP, "nothing is quantized that has to be measured")
        return None
    made_up = request.synthetic_calibration or recipe.quantized is not INT8
    with steps.run(STEP) as step:
        statistics = calibrate_model(
            CalibrationRequest(
                model=prepared,
                model_sha256=sha256,
                measured=measured,
                optimization_profile=sizes,
                data=request.calibration_data,
                preprocessing=profile.preprocessing,
                on_nonfinite=profile.calibration.nonfinite,
                synthetic_samples=SYNTHETIC_SAMPLES if made_up else 0,
            ),
            _make_observer(steps),
        )
        methods = choose_methods(profile.calibration, recipe)
        found = statistics.compute_thresholds(methods, recipe.quantized)
        step.log = [*statistics.notes, *statistics.skipped]
        made = "made-up " if statistics.is_synthetic else ""
        step.detail = f"{len(found)} values, {statistics.samples} {made}samples, {methods.default}"
    return Calibration(statistics, methods, found)


def refuse_pins(pins: Sequence[str], device: DeviceSpec) -> None:
    """Refuse pins to an 8-bit type that the device does not compute in.

    Raises:
        NotPossibleError: Names pin, type and device.
    """
    for pin in map(parse_pin, pins):
        need = None if pin.kind is None else pin.kind.name.partition("-")[0]
        if need is not None and need not in device.precisions:
            raise NotPossibleError(
                f"the pin {pin.text!r} asks for {need.upper()}, which {device.title} does not have",
                hint=f"It has {', '.join(device.precisions)}.",
            )


def _refuse_samples(request: BuildRequest, recipe: Recipe) -> None:
    if request.calibration_data or request.synthetic_calibration:
        raise UsageError(
            f"recipe {recipe.name} quantizes nothing: there is nothing to calibrate",
            hint="Leave --calib out, or choose a profile with recipe int8 or fp8.",
        )


def _make_observer(steps: StepRunner) -> Any:
    def observe(state: CalibrationProgress) -> None:
        left = state.remaining_s
        detail = f"{state.samples_done} of {state.samples_total} samples"
        detail += "" if left is None else f", about {left:.0f} s left"
        fraction = state.samples_done / state.samples_total if state.samples_total else None
        steps.progress(ProgressEvent(STEP, detail, state.elapsed_s, fraction=fraction))

    return observe


def describe_quantization(
    typed: TypedModel, sizes: OptimizationProfile, calibration: Calibration | None
) -> QuantizationReport | None:
    """Return what a report says about quantization; None when nothing is quantized.

    Args:
        typed: The typed model.
        sizes: The usual ones decide the shares of work.
        calibration: Of this build; None for a model that brought its own Q/DQ pairs.
    """
    plan = typed.quantization
    if plan is None and not typed.plan.quantized:
        return None
    layers = plan.layers if plan is not None else {}
    kinds = {decision.quantized for decision in layers.values() if decision.quantized is not None}
    return QuantizationReport(
        kind=" and ".join(sorted(kinds)) or "none",
        decisions=layers,
        notes=plan.notes if plan is not None else (),
        audit=audit_quantization(typed.model, {n: s.opt for n, s in sizes.shapes.items()}),
        calibration=None
        if calibration is None
        else summarize_calibration(
            calibration.statistics, calibration.methods, calibration.thresholds
        ),
    )


def assume_thresholds(
    model: OnnxModel, recipe: Recipe, pins: Sequence[str] = ()
) -> dict[str, float] | None:
    """Return a threshold of 1 for everything, to see a quantized graph's structure before data."""
    if recipe.quantized is None:
        return None
    prepared = prepare_for_quantization(model, recipe)
    measured = plan_quantization(build_index(prepared), recipe, pins=pins).measured
    return dict.fromkeys(measured, 1.0)
