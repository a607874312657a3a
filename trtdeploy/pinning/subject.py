"""The model of a search for pins, ready to be typed again and again: planned and calibrated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from trtdeploy.calibration.calibration_step import run_calibration
from trtdeploy.calibration.ranges import measure_ranges
from trtdeploy.calibration.summary import Calibration
from trtdeploy.core.steps import StepRunner
from trtdeploy.graph.hashing import hash_model
from trtdeploy.graph.index import build_index
from trtdeploy.graph.model import OnnxModel
from trtdeploy.pinning.candidate import Candidate, PinningOutcome, list_nodes
from trtdeploy.pinning.candidates import (
    list_measured,
    list_narrow_groups,
    list_quantized_layers,
)
from trtdeploy.pinning.reasons import ReasonFinder
from trtdeploy.precision.audit.auditing import audit_quantization
from trtdeploy.precision.pins import FP16, FP32
from trtdeploy.precision.quantization.plan import QuantizationPlan
from trtdeploy.precision.quantization.planning import plan_quantization
from trtdeploy.precision.quantization.preparation import (
    prepare_for_quantization,
    prepare_for_typing,
)
from trtdeploy.precision.typed_model import apply_recipe
from trtdeploy.precision.typing_options import TypingOptions
from trtdeploy.precision.typing_source import TypingSource

_EXPLAINED = 20
"""So many nodes get a reason: reading weights takes time."""


@dataclass(frozen=True)
class PinningSubject:
    """A model that can be typed with any pins.

    Attributes:
        model: As loaded, before any preparation.
        options: What its recipe is applied with, pins of the search aside. Strongly typed: a
            weakly typed graph rounds nothing that could be seen.
        prepared: The form that was planned.
        candidates: What can be pinned, in graph order.
        plan: What is quantized; None when nothing is.
        calibration: Amax of each value; None when nothing is quantized.
        notes: What a person should know, one sentence each.
    """

    model: OnnxModel
    options: TypingOptions
    prepared: OnnxModel
    candidates: tuple[Candidate, ...]
    plan: QuantizationPlan | None = None
    calibration: Calibration | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def pin_precision(self) -> str:
        """What a node is pinned to: the type that the rest of the graph has."""
        recipe = self.options.recipe
        return FP16 if recipe.quantized is not None and recipe.low is not None else FP32

    def pin(self, pinned: Sequence[Candidate]) -> TypingOptions:
        """Return the options with these candidates pinned."""
        return self.options.add_pins([f"{self.pin_precision}:{n}" for n in list_nodes(pinned)])

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
        typed = apply_recipe(self.model, self.pin(pinned))
        return audit_quantization(typed.model, shapes).flops_share


def prepare_subject(source: TypingSource, steps: StepRunner) -> PinningSubject:
    """Plan and calibrate.

    Raises:
        UsageError: There is nothing to pin, or samples are missing.
        InputError: The samples cannot be used.
    """
    options, model = source.options, source.model
    if options.recipe.quantized is None:
        prepared = prepare_for_typing(model, options.recipe)
        options = replace(options, ranges=measure_ranges(source))
        return PinningSubject(
            model, options, prepared, tuple(list_narrow_groups(prepared, options))
        )
    prepared = prepare_for_quantization(model, options.recipe)
    plan = plan_quantization(build_index(prepared), options.recipe, pins=options.pins)
    candidates = list_quantized_layers(prepared, plan, source.sizes.opt_shapes)
    # an earlier calibration has measured what a build needs, and no more
    is_saved = source.request.calibration_samples != source.request.calibration_data
    measured = plan.measured if is_saved else list_measured(prepared, plan)
    calibration = run_calibration(source, hash_model(model), prepared, measured, steps)
    note = "calibrated with made-up inputs: real ones may break other nodes"
    return PinningSubject(
        model,
        replace(options, amax=calibration.amax, ranges=measure_ranges(source)),
        prepared,
        tuple(candidates),
        plan,
        calibration,
        (note,) if calibration.statistics.is_synthetic else (),
    )
