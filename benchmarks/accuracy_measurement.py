"""How far a quantized file is from its FP32 model, whoever made it: one emulator for all."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.accuracy_models import AccuracyModel, Array, Arrays
from trtdeploy.backends.onnxruntime.session import OnnxRuntimeSession
from trtdeploy.graph.loading import load_model
from trtdeploy.graph.saving import save_model
from trtdeploy.precision.audit.auditing import audit_quantization
from trtdeploy.precision.emulation import emulate_model

_BATCH = 8


@dataclass(frozen=True)
class AccuracyFigures:
    """What one candidate reaches.

    Attributes:
        sqnr_db: By output, over all samples together.
        task: Figures of the task; 1 is perfect.
        quantized_share: Part of the arithmetic that runs in 8 bits; None when not known.
    """

    sqnr_db: Mapping[str, float]
    task: Mapping[str, float]
    quantized_share: float | None


class AccuracyJudge:
    """Compares candidates of one model with its FP32 outputs, which are computed once.

    Args:
        model: With its data.
    """

    def __init__(self, model: AccuracyModel) -> None:
        self.model = model
        self._feeds = model.make_samples(model.evaluating, "evaluate")
        self._reference = _run(model.path, self._feeds)

    def measure(self, candidate: Path) -> AccuracyFigures:
        """Emulate a typed or quantized ONNX file and compare its outputs."""
        loaded = load_model(candidate)
        with tempfile.TemporaryDirectory() as folder:
            emulated = Path(folder) / "emulated.onnx"
            save_model(emulate_model(loaded), emulated)
            outputs = _run(emulated, self._feeds)
        shapes = {name: (1, *values.shape[1:]) for name, values in self._feeds.items()}
        return AccuracyFigures(
            {name: _measure_sqnr(self._reference[name], outputs[name]) for name in outputs},
            self.model.measure_task(self._feeds, self._reference, outputs),
            audit_quantization(loaded, shapes).flops_share,
        )


def iterate_batches(feeds: Arrays, size: int = _BATCH) -> Iterator[dict[str, Array]]:
    """Yield the samples in batches."""
    count = len(next(iter(feeds.values())))
    for start in range(0, count, size):
        yield {name: values[start : start + size] for name, values in feeds.items()}


def _run(path: Path, feeds: Arrays) -> dict[str, Array]:
    parts: dict[str, list[Array]] = defaultdict(list)
    with OnnxRuntimeSession(path, optimize=False) as session:
        for batch in iterate_batches(feeds):
            for name, values in session.run(batch).items():
                parts[name].append(values)
    return {name: np.concatenate(found) for name, found in parts.items()}


def _measure_sqnr(reference: Array, candidate: Array) -> float:
    wide = reference.astype(np.float64)
    noise = float(((candidate - wide) ** 2).sum())
    return 10 * float(np.log10((wide**2).sum() / noise)) if noise else float("inf")
