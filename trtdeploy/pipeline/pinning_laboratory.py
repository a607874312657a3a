"""Measures a model with some nodes pinned: typed, emulated, run, compared, one at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from trtdeploy.backends.onnxruntime_session import OnnxRuntimeSession
from trtdeploy.core.tensors import Outputs
from trtdeploy.graph.model import OnnxModel
from trtdeploy.graph.saving import save_model
from trtdeploy.parity.task_metric import MetricAccumulator, load_task_metric
from trtdeploy.pinning.candidate import Candidate, Score
from trtdeploy.pinning.target import TargetJudge
from trtdeploy.pipeline.pinning_samples import KnownRuns
from trtdeploy.precision.emulation import emulate_model
from trtdeploy.precision.pins import FP16, FP32, parse_pin
from trtdeploy.precision.recipe import Recipe
from trtdeploy.precision.typed_model import TypedModel, apply_recipe

_FILE_NAME = "candidate.onnx"


@dataclass(frozen=True)
class TypingInputs:
    """Everything that a recipe is applied with, pins of a search aside.

    Attributes:
        model: As loaded.
        recipe: In its strongly typed form: a weakly typed graph rounds nothing that could be seen.
        pins: What the user and the deploy profile want anyway.
        thresholds: For a quantizing recipe.
        ranges: Measured ones, if any.
        keep_io: Inputs and outputs keep their types.
    """

    model: OnnxModel
    recipe: Recipe
    pins: tuple[str, ...] = ()
    thresholds: Mapping[str, float] | None = None
    ranges: Mapping[str, float] | None = None
    keep_io: bool = True

    @property
    def pin_precision(self) -> str:
        """What a node is pinned to: the type that the rest of the graph has."""
        quantizes = self.recipe.quantized is not None and self.recipe.low is not None
        return FP16 if quantizes else FP32

    def type_model(self, pins: Sequence[str] = ()) -> TypedModel:
        """Apply the recipe with more pins."""
        return apply_recipe(
            self.model,
            self.recipe,
            pins=(*self.pins, *pins),
            ranges=self.ranges,
            keep_io=self.keep_io,
            thresholds=self.thresholds,
        )

    def type_pinned(self, pinned: Sequence[Candidate]) -> TypedModel:
        """Apply the recipe with these candidates pinned."""
        nodes = [node for candidate in pinned for node in candidate.nodes]
        return self.type_model([f"{self.pin_precision}:{node}" for node in nodes])


@dataclass(frozen=True)
class MetricTarget:
    """A figure of the task.

    Attributes:
        name: ``top1``, ``miou`` or ``module:function``.
        max_drop: How far it may fall.
    """

    name: str
    max_drop: float


class EmulationLaboratory:
    """Runs typed models as a device would, on the CPU.

    Args:
        inputs: What the recipe is applied with.
        candidates: Everything that may be pinned.
        runs: Samples, and what FP32 makes of them.
        judge: Compares outputs.
        metric: A task metric that decides instead of the judge's own figure.
    """

    def __init__(
        self,
        inputs: TypingInputs,
        candidates: Sequence[Candidate],
        runs: KnownRuns,
        judge: TargetJudge,
        metric: MetricTarget | None = None,
    ) -> None:
        self._inputs = inputs
        self._nodes = [node for candidate in candidates for node in candidate.nodes]
        self._runs = runs
        self._judge = judge
        self._path = runs.folder / _FILE_NAME
        self._metric = metric
        self._reference_value: float | None = None

    def measure(self, pinned: Sequence[Candidate]) -> Score:
        """Return the score with these candidates pinned."""
        return self._run(self._inputs.type_pinned(pinned))

    def measure_alone(self, candidate: Candidate) -> Score:
        """Return the score with nothing narrow but this candidate.

        What is quantized is quantized in an FP32 graph, so that FP16 has no part in it.
        """
        own = set(candidate.nodes)
        others = [f"{FP32}:{node}" for node in self._nodes if node not in own]
        inputs = self._inputs
        if inputs.recipe.quantized is not None:
            alone = replace(inputs.recipe, low=None, limits=None)
            inputs = replace(inputs, recipe=alone, pins=tuple(map(_widen_pin, inputs.pins)))
        return self._run(inputs.type_model(others), decide=False)

    def _run(self, typed: TypedModel, *, decide: bool = True) -> Score:
        save_model(emulate_model(typed.model), self._path)
        metric = load_task_metric(self._metric.name)() if self._metric and decide else None
        with OnnxRuntimeSession(self._path, optimize=False) as session:
            score = self._judge.score(self._iterate_pairs(session, metric))
        if metric is None or self._metric is None:
            return score
        return _apply_metric(score, metric.finish(), self._measure_reference(), self._metric)

    def _iterate_pairs(
        self, session: OnnxRuntimeSession, metric: MetricAccumulator | None
    ) -> Iterator[tuple[Outputs, Outputs]]:
        for run in self._runs:
            outputs = session.run(run.feeds)
            if metric is not None and run.labels is not None:
                metric.add(outputs, run.labels)
            yield run.reference, outputs

    def _measure_reference(self) -> float:
        if self._reference_value is None and self._metric is not None:
            metric = load_task_metric(self._metric.name)()
            for run in self._runs:
                if run.labels is not None:
                    metric.add(run.reference, run.labels)
            self._reference_value = metric.finish()
        return self._reference_value or 0.0


def _widen_pin(text: str) -> str:
    pin = parse_pin(text)
    return f"{FP32}:{pin.pattern}" if pin.precision == FP16 else text


def _apply_metric(score: Score, value: float, reference: float, metric: MetricTarget) -> Score:
    drop = reference - value
    if drop <= 1e-12 * max(1.0, abs(reference)):  # shares of counts are not exact in FP64
        return replace(score, excess=0.0, value=value)
    excess = drop / metric.max_drop if metric.max_drop else float("inf")
    return replace(score, excess=excess, value=value)
