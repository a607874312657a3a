"""How long one emulated FP16 run takes, against the FP32 baseline's own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from benchmarks.parity_report import BASELINE, EMULATED, OPTIMIZED, SpeedResult
from benchmarks.tools import PROGRAMS
from trtdeploy.backends.numpy_types import to_numpy_type
from trtdeploy.config.recipe import find_recipe
from trtdeploy.core.tensors import Shape, TensorSpec
from trtdeploy.graph.loading import load_model
from trtdeploy.graph.model import OnnxModel
from trtdeploy.graph.saving import save_model
from trtdeploy.precision.emulation import emulate_model
from trtdeploy.precision.typed_model import apply_recipe
from trtdeploy.precision.typing_options import TypingOptions

IMAGE = 640
"""Pixels of a free height or width."""


class WorkerError(Exception):
    """A process that runs a session ended before it was told to."""


class SessionProcess:
    """A session in a process of its own, which runs once whenever it is asked.

    Args:
        model: The ONNX file.
        feeds: An npz file with one array per input.
        optimize: Leave ONNX Runtime's graph optimisations on.

    Raises:
        WorkerError: It does not open or run the model; the reason is on stderr.
    """

    def __init__(self, model: Path, feeds: Path, *, optimize: bool) -> None:
        program = PROGRAMS / "run_session.py"
        self._process = subprocess.Popen(
            [sys.executable, "-I", program, model, feeds, str(int(optimize))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self._name = model.name
        try:
            self._read()  # it has opened the model and warmed up
        except WorkerError:
            self._close()
            raise

    def __enter__(self) -> SessionProcess:
        """Return the process itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End it."""
        self._close()

    def measure_run(self) -> float:
        """Run once and return the wall time in seconds.

        Raises:
            WorkerError: The process has ended.
        """
        if self._process.stdin is None:
            raise WorkerError(f"the session of {self._name} has no stdin")
        self._process.stdin.write("\n")
        return float(self._read())

    def _read(self) -> str:
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            raise WorkerError(f"the session of {self._name} ended early; the reason is above")
        return line

    def _close(self) -> None:
        self._process.communicate()  # closes stdin, which ends it


def measure_speed(
    path: Path, label: str, folder: Path, rounds: int, progress: Callable[[str], None]
) -> SpeedResult:
    """Run the emulated model, the baseline and the optimised baseline in turn.

    Args:
        path: The FP32 model.
        label: For tables.
        folder: For what is made of it.
        rounds: Runs of each.
        progress: Is told what happens.

    Raises:
        WorkerError: One of them does not run.
    """
    progress(f"{label}:")
    model = load_model(path)
    feeds, emulated = folder / "feeds.npz", folder / "emulated.onnx"
    np.savez(feeds, **make_feeds(model.input_specs()))
    save_model(emulate_fp16(model), emulated)
    with ExitStack() as stack:
        workers = {
            name: stack.enter_context(SessionProcess(file, feeds, optimize=optimize))
            for name, file, optimize in (
                (EMULATED, emulated, False), (BASELINE, path, False), (OPTIMIZED, path, True),
            )
        }  # fmt: skip
        return SpeedResult(label, _run_in_turn(workers, rounds, progress))


def emulate_fp16(model: OnnxModel) -> OnnxModel:
    """Return the model that a parity check of recipe fp16 emulates."""
    return emulate_model(apply_recipe(model, TypingOptions(find_recipe("fp16"))).model)


def make_feeds(specs: Sequence[TensorSpec]) -> dict[str, Any]:
    """Return uniform random values in [0, 1), by input."""
    generator = np.random.default_rng(5)
    return {
        spec.name: generator.random(fill_shape(spec.shape or ())).astype(to_numpy_type(spec.dtype))
        for spec in specs
    }


def fill_shape(shape: Shape) -> tuple[int, ...]:
    """Return a shape with 1 for a free first size and ``IMAGE`` for any other free size."""
    return tuple(
        size if isinstance(size, int) else (IMAGE if axis else 1) for axis, size in enumerate(shape)
    )


def _run_in_turn(
    workers: Mapping[str, SessionProcess], rounds: int, progress: Callable[[str], None]
) -> dict[str, tuple[float, ...]]:
    found: dict[str, list[float]] = {name: [] for name in workers}
    for number in range(1, rounds + 1):
        for name, worker in workers.items():
            found[name].append(worker.measure_run())
        times = ", ".join(f"{name} {runs[-1]:.3f} s" for name, runs in found.items())
        progress(f"  round {number} of {rounds}: {times}")
    return {name: tuple(runs) for name, runs in found.items()}
