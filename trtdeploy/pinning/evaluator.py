"""Measures a model with some nodes pinned: typed, emulated, run, compared, one at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from trtdeploy.backends.onnxruntime.session import OnnxRuntimeSession
from trtdeploy.core.arrays import Outputs, Runner
from trtdeploy.graph.saving import save_model
from trtdeploy.parity.border import Border
from trtdeploy.parity.task_metric import MetricAccumulator, load_task_metric
from trtdeploy.pinning.candidate import Candidate, Score, list_nodes
from trtdeploy.pinning.request import PinRequest
from trtdeploy.pinning.runs import RecordedRuns
from trtdeploy.pinning.subject import PinningSubject
from trtdeploy.pinning.target import TargetJudge
from trtdeploy.precision.emulation import emulate_model
from trtdeploy.precision.pins import FP16, FP32, parse_pin
from trtdeploy.precision.typed_model import apply_recipe
from trtdeploy.precision.typing_options import TypingOptions

_FILE_NAME = "candidate.onnx"


class EmulationEvaluator:
    """Runs typed models as a device would, on the CPU.

    Args:
        subject: The model, and what its recipe is applied with.
        candidates: Everything that may be pinned.
        runs: Samples, and what FP32 makes of them.
        judge: Compares outputs.
        request: May name a task metric that decides instead of the judge's own figure.
    """

    def __init__(
        self,
        subject: PinningSubject,
        candidates: Sequence[Candidate],
        runs: RecordedRuns,
        judge: TargetJudge,
        request: PinRequest,
    ) -> None:
        self._subject = subject
        self._nodes = list_nodes(candidates)
        self._runs = runs
        self._judge = judge
        self._path = runs.folder / _FILE_NAME
        self._metric = request.metric
        self._max_drop = request.max_drop

    def measure(self, pinned: Sequence[Candidate]) -> Score:
        """Return the score with these candidates pinned."""
        return self._run(self._subject.pin(pinned))

    def measure_alone(self, candidate: Candidate) -> Score:
        """Return the score with nothing narrow but this candidate.

        What is quantized is quantized in an FP32 graph, so that FP16 has no part in it.
        """
        own = set(candidate.nodes)
        others = [f"{FP32}:{node}" for node in self._nodes if node not in own]
        options = self._subject.options
        if options.recipe.quantized is not None:
            alone = replace(options.recipe, low=None)
            options = replace(options, recipe=alone, pins=tuple(map(_widen_pin, options.pins)))
        return self._run(options.add_pins(others), decide=False)

    def _run(self, options: TypingOptions, *, decide: bool = True) -> Score:
        typed = apply_recipe(self._subject.model, options)
        save_model(emulate_model(typed.model), self._path)
        metric = load_task_metric(self._metric)() if self._metric and decide else None
        with OnnxRuntimeSession(self._path, optimize=False) as session:
            run = Border(options.border_dtype).open_runner(session)
            score = self._judge.score(self._iterate_pairs(run, metric))
        return score if metric is None else self._apply_metric(score, metric.finish())

    def _iterate_pairs(
        self, run: Runner, metric: MetricAccumulator | None
    ) -> Iterator[tuple[Outputs, Outputs]]:
        for recorded in self._runs:
            outputs = run(recorded.feeds)
            if metric is not None and recorded.labels is not None:
                metric.add(outputs, recorded.labels)
            yield recorded.reference, outputs

    def _apply_metric(self, score: Score, value: float) -> Score:
        drop = self._reference_value - value
        # shares of counts are not exact in FP64
        if drop <= 1e-12 * max(1.0, abs(self._reference_value)):
            return replace(score, excess=0.0, value=value)
        excess = drop / self._max_drop if self._max_drop else float("inf")
        return replace(score, excess=excess, value=value)

    @cached_property
    def _reference_value(self) -> float:
        metric = load_task_metric(self._metric)()
        for run in self._runs:
            if run.labels is not None:
                metric.add(run.reference, run.labels)
        return metric.finish()


def _widen_pin(text: str) -> str:
    pin = parse_pin(text)
    return f"{FP32}:{pin.pattern}" if pin.precision == FP16 else text
