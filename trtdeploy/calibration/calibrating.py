"""Calibration: run a model on samples, once, and keep nothing but histograms."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from onnx import helper

from trtdeploy.backends.onnxruntime.probe import OnnxRuntimeProbe
from trtdeploy.calibration.counting import ValueCounter, count_threads
from trtdeploy.calibration.document import load_statistics
from trtdeploy.calibration.runs import SampleSet, SyntheticSet
from trtdeploy.calibration.statistics import (
    CalibrationData,
    CalibrationStatistics,
    check_distinct,
    merge_statistics,
)
from trtdeploy.config.preprocessing import PreprocessingSection
from trtdeploy.core.dtypes import DType
from trtdeploy.core.errors import InputError, UsageError
from trtdeploy.core.ranges import OptimizationProfile
from trtdeploy.graph.index import build_index
from trtdeploy.graph.model import OnnxModel
from trtdeploy.graph.passes.drop_unread_nodes import DropUnreadNodesPass
from trtdeploy.graph.passes.drop_unused_constants import DropUnusedConstantsPass
from trtdeploy.graph.saving import save_model
from trtdeploy.samples.source import OnNonfinite

SYNTHETIC_SAMPLES = 16
_FILE_SUFFIX = ".json"


@dataclass(frozen=True)
class CalibrationRequest:
    """One calibration.

    Attributes:
        model: From ``prepare_for_quantization``.
        model_sha256: Of the file that it was prepared from.
        measured: Values to measure: ``QuantizationPlan.measured``.
        optimization_profile: Its usual sizes are run, with one sample at a time where the batch is
            free.
        data: What ``--calib`` was given: samples as ``open_samples`` takes them, and files that
            earlier calibrations of the same model wrote.
        preprocessing: For images.
        on_nonfinite: ``error``, or ``skip`` and count samples with NaN or infinity, in an input or
            computed from it.
        synthetic_samples: How many samples to make up when there is no data; 0 for none.
    """

    model: OnnxModel
    model_sha256: str
    measured: tuple[str, ...]
    optimization_profile: OptimizationProfile
    data: tuple[Path, ...] = ()
    preprocessing: PreprocessingSection | None = None
    on_nonfinite: OnNonfinite = "error"
    synthetic_samples: int = 0


@dataclass(frozen=True)
class CalibrationProgress:
    """How far a calibration is.

    Attributes:
        samples_done: Samples that were counted.
        samples_total: All of them, as far as is known; bad ones may be among them.
        elapsed_s: Seconds since the first sample was read.
    """

    samples_done: int
    samples_total: int
    elapsed_s: float

    @property
    def remaining_s(self) -> float | None:
        """Seconds still to go, at the pace so far; None before the first sample is done."""
        if not self.samples_done:
            return None
        return self.elapsed_s / self.samples_done * (self.samples_total - self.samples_done)


CalibrationObserver = Callable[[CalibrationProgress], None]


def calibrate_model(
    request: CalibrationRequest, progress: CalibrationObserver = lambda _: None
) -> CalibrationStatistics:
    """Return the histograms of the measured values over all samples.

    Each sample is run once, two of them at a time; what a run computed is counted and forgotten, so
    memory does not depend on the number of samples. The result does not depend on their order.

    Args:
        request: What to measure on what.
        progress: Told after each sample.

    Raises:
        UsageError: There is neither data nor leave to make it up.
        InputError: The data does not fit the model, holds NaN or infinity (unless such samples are
            skipped), or leaves no sample; or a calibration file is of another model, or lacks
            tensors.
        CompileError: ONNX Runtime refuses the model.
    """
    files = [path for path in request.data if path.suffix.lower() == _FILE_SUFFIX]
    parts = [_load(path, request) for path in files]
    sets = _open_sets(request, [path for path in request.data if path not in files])
    if not parts and not sets:
        raise UsageError(
            "calibration needs samples, and none were given",
            hint="Give a folder or file of samples with --calib, or try --synthetic-calib, which "
            "proves no accuracy.",
        )
    loaded = [(data.description, data.sha256) for part in parts for data in part.data]
    check_distinct([*loaded, *((each.description, each.sha256) for each in sets)])
    if sets:
        with tempfile.TemporaryDirectory(prefix="trtdeploy-calibration-") as folder:
            path = Path(folder) / "probe.onnx"
            save_model(_expose_values(request), path)
            probe = OnnxRuntimeProbe(path, threads=count_threads())
            parts += _measure_sets(request, probe, sets, progress)
    return merge_statistics(parts)


def _load(path: Path, request: CalibrationRequest) -> CalibrationStatistics:
    loaded = load_statistics(path)
    if loaded.model_sha256 != request.model_sha256:
        raise InputError(
            f"{path} calibrates another model: SHA-256 {loaded.model_sha256[:12]}..., expected "
            f"{request.model_sha256[:12]}...",
            hint="Calibrate this model with samples of its own.",
        )
    return loaded.select(request.measured)


def _open_sets(
    request: CalibrationRequest, paths: Sequence[Path]
) -> Sequence[SampleSet | SyntheticSet]:
    """Open everything before anything is run: a typo must not cost the time of a calibration."""
    sizes, count = request.optimization_profile, request.synthetic_samples
    if count and not request.data:
        return [SyntheticSet(request.model, sizes, count)]
    inputs = request.model.input_specs()
    return [
        SampleSet(path, inputs, sizes, request.preprocessing, request.on_nonfinite)
        for path in paths
    ]


def _measure_sets(
    request: CalibrationRequest,
    probe: OnnxRuntimeProbe,
    sets: Sequence[SampleSet | SyntheticSet],
    progress: CalibrationObserver,
) -> list[CalibrationStatistics]:
    started = time.perf_counter()
    total = sum(map(len, sets))
    before = 0
    parts = []
    for each in sets:
        counter = ValueCounter(probe, request.measured, request.on_nonfinite)

        def observe(done: int, before: int = before) -> None:
            elapsed_s = time.perf_counter() - started
            progress(CalibrationProgress(before + done, total, elapsed_s))

        counter.count(each.iterate_runs(), observe)
        before += counter.samples
        parts.append(_summarize(request, each, counter))
    return parts


def _summarize(
    request: CalibrationRequest, samples: SampleSet | SyntheticSet, counter: ValueCounter
) -> CalibrationStatistics:
    skipped = (*samples.skipped, *sorted(counter.skipped))
    if not counter.samples:
        raise InputError(
            f"{samples.description}: no usable sample: the first of {len(skipped)} that were left "
            f"out is {skipped[0]}"
        )
    notes = list(samples.notes)
    if skipped:
        notes.append(f"samples left out because of NaN or infinity: {len(skipped)}")
    if counter.repeated:
        listed = ", ".join(repr(name) for name in sorted(counter.repeated))
        notes.append(
            f"rows that fill the last batch, or were to be left out, were counted in {listed}"
        )
    data = CalibrationData(
        samples.description, samples.sha256, counter.samples, skipped, samples.is_synthetic
    )
    return CalibrationStatistics(request.model_sha256, counter.histograms, (data,), tuple(notes))


def _expose_values(request: CalibrationRequest) -> OnnxModel:
    """Return a copy whose outputs are the measured values, and which computes nothing else."""
    probed = request.model.copy()
    main = build_index(probed).main
    unknown = [n for n in request.measured if n not in main.producers and n not in main.inputs]
    if unknown:
        raise UsageError(f"the model computes no value {unknown[0]!r}")
    computed = [name for name in request.measured if name in main.producers]
    if computed:  # else the outputs stay: a model must have some
        del probed.graph.output[:]
    for name in computed:
        dtype = main.types.get(name, DType.FLOAT32)
        probed.graph.output.append(helper.make_tensor_value_info(name, dtype.code, None))
    DropUnreadNodesPass()(probed)
    DropUnusedConstantsPass()(probed)
    return probed
