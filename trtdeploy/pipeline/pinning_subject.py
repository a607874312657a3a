"""The model of a search for pins, ready to be typed again and again: planned and calibrated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trtdeploy.config.deploy_profile import DeployProfile
from trtdeploy.core.ranges import OptimizationProfile
from trtdeploy.core.steps import ProgressEvent, StepRunner
from trtdeploy.graph.index import build_index
from trtdeploy.graph.model import OnnxModel
from trtdeploy.parity.samples import open_samples
from trtdeploy.pinning.candidate import Candidate, PinningOutcome
from trtdeploy.pipeline.build_key import hash_model
from trtdeploy.pipeline.calibrating import (
    SYNTHETIC_SAMPLES,
    CalibrationProgress,
    CalibrationRequest,
    calibrate_model,
)
from trtdeploy.pipeline.measuring import measure_model_ranges
from trtdeploy.pipeline.pinning_candidates import (
    list_measured,
    list_narrow_groups,
    list_quantized_layers,
)
from trtdeploy.pipeline.pinning_laboratory import TypingInputs
from trtdeploy.pipeline.pinning_reasons import ReasonFinder
from trtdeploy.pipeline.pinning_request import PinRequest
from trtdeploy.pipeline.quantizing import Calibration, choose_methods
from trtdeploy.precision.quantization.audit import audit_quantization
from trtdeploy.precision.quantization.plan import QuantizationPlan
from trtdeploy.precision.quantization.planning import plan_quantization
from trtdeploy.precision.quantization.preparation import (
    prepare_for_quantization,
    prepare_for_typing,
)
from trtdeploy.precision.quantization.scheme import INT8, QuantizedType
from trtdeploy.precision.recipe import Recipe

_EXPLAINED = 20
"""So many nodes get a reason: reading weights takes time."""
_STEP = "calibrate"


@dataclass(frozen=True)
class PinningSource:
    """What a search starts from.

    Attributes:
        request: What was asked.
        profile: The deploy profile.
        recipe: Its recipe, strongly typed.
        model: As loaded.
        sizes: The usual ones are run.
    """

    request: PinRequest
    profile: DeployProfile
    recipe: Recipe
    model: OnnxModel
    sizes: OptimizationProfile

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The usual shape of every input."""
        return {name: sizes.opt for name, sizes in self.sizes.shapes.items()}

    @property
    def pins(self) -> tuple[str, ...]:
        """What is pinned anyway."""
        return (*self.profile.precision.list_pins(), *self.request.pins)


@dataclass(frozen=True)
class PinningSubject:
    """A model that can be typed with any pins.

    Attributes:
        inputs: What its recipe is applied with.
        prepared: The form that was planned.
        candidates: What can be pinned, in graph order.
        plan: What is quantized; None when nothing is.
        calibration: Thresholds; None when nothing is quantized.
        notes: What a person should know, one sentence each.
    """

    inputs: TypingInputs
    prepared: OnnxModel
    candidates: tuple[Candidate, ...]
    plan: QuantizationPlan | None = None
    calibration: Calibration | None = None
    notes: tuple[str, ...] = field(default=())

    def explain(self, outcome: PinningOutcome) -> dict[str, str]:
        """Return why the worst nodes, and those that were pinned, lose so much."""
        if self.plan is None or self.calibration is None:
            return {}
        finder = ReasonFinder(self.prepared, self.plan, self.calibration)
        shown = {c.name for c in (*outcome.candidates[:_EXPLAINED], *outcome.pinned)}
        return {name: finder.explain(name) for name in shown}

    def measure_share(
        self, shapes: dict[str, tuple[int, ...]], pinned: Sequence[Candidate]
    ) -> float | None:
        """Return the part of the arithmetic that is quantized; None when not known."""
        if self.plan is None:
            return None
        return audit_quantization(self.inputs.type_pinned(pinned).model, shapes).flops_share


def prepare_subject(source: PinningSource, steps: StepRunner) -> PinningSubject:
    """Plan and calibrate.

    Raises:
        UsageError: There is nothing to pin, or samples are missing.
        InputError: The samples cannot be used.
    """
    kind = source.recipe.quantized
    if kind is None:
        return _prepare_narrowed(source)
    prepared = prepare_for_quantization(source.model, source.recipe)
    plan = plan_quantization(build_index(prepared), source.recipe, pins=source.pins)
    candidates = list_quantized_layers(prepared, plan, source.shapes)
    calibration = _calibrate(source, prepared, plan, kind, steps)
    notes = ["calibrated with made-up inputs: real ones may break other nodes"]
    return PinningSubject(
        _collect_inputs(source, calibration),
        prepared,
        tuple(candidates),
        plan,
        calibration,
        tuple(notes if calibration.statistics.is_synthetic else ()),
    )


def _prepare_narrowed(source: PinningSource) -> PinningSubject:
    prepared = prepare_for_typing(source.model, source.recipe)
    inputs = _collect_inputs(source, None)
    candidates = list_narrow_groups(prepared, inputs)
    return PinningSubject(inputs, prepared, tuple(candidates))


def _collect_inputs(source: PinningSource, calibration: Calibration | None) -> TypingInputs:
    return TypingInputs(
        source.model,
        source.recipe,
        source.pins,
        None if calibration is None else calibration.thresholds,
        _measure_ranges(source),
        source.profile.precision.io == "keep",
    )


def _measure_ranges(source: PinningSource) -> dict[str, float] | None:
    """Return what a build with the same ``--data`` would measure."""
    data = source.request.data
    if data is None or source.recipe.low is None:
        return None
    samples = open_samples(data, source.model.input_specs(), source.profile.preprocessing)
    return measure_model_ranges(source.model, source.recipe, samples, source.sizes)


def _calibrate(
    source: PinningSource,
    prepared: OnnxModel,
    plan: QuantizationPlan,
    kind: QuantizedType,
    steps: StepRunner,
) -> Calibration:
    request, profile = source.request, source.profile
    made_up = request.synthetic_calibration or kind is not INT8
    # an earlier calibration has measured what a build needs, and no more
    is_saved = any(Path(path).suffix.lower() == ".json" for path in request.calibration_data)

    def observe(state: CalibrationProgress) -> None:
        detail = f"{state.samples_done} of {state.samples_total} samples"
        steps.progress(ProgressEvent(_STEP, detail, state.elapsed_s))

    with steps.run(_STEP) as step:
        statistics = calibrate_model(
            CalibrationRequest(
                model=prepared,
                model_sha256=hash_model(source.model),
                measured=plan.measured if is_saved else list_measured(prepared, plan),
                optimization_profile=source.sizes,
                data=request.calibration_data,
                preprocessing=profile.preprocessing,
                on_nonfinite=profile.calibration.nonfinite,
                synthetic_samples=SYNTHETIC_SAMPLES if made_up else 0,
            ),
            observe,
        )
        methods = choose_methods(profile.calibration, source.recipe)
        thresholds = statistics.compute_thresholds(methods, kind)
        step.detail = f"{statistics.samples} samples, {methods.default}"
    return Calibration(statistics, methods, thresholds)
