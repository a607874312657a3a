"""ONNX Runtime on the CPU: does a model load, and how large do its values get."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from trtdeploy.core.arrays import Feeds
from trtdeploy.core.errors import CompileError, InputError
from trtdeploy.core.optional import import_optional


def open_session(
    path: Path,
    *,
    optimize: bool,
    threads: int = 0,
    memory_pattern: bool = True,
    quiet: bool = False,
) -> Any:
    """Return an ``InferenceSession`` on the CPU, where FP32 is FP32: TF32 exists on GPUs only.

    Args:
        path: The model.
        optimize: Leave ONNX Runtime's graph optimisations on.
        threads: Threads that share one operator; 0 takes every core.
        memory_pattern: Plan the memory of a shape when it runs again; False takes less of it.
        quiet: A run that fails raises, and writes nothing to stderr.

    Raises:
        CompileError: ONNX Runtime refuses the model.
    """
    runtime = import_optional(
        "onnxruntime", needed_for="running a model on the CPU", install="pip install onnxruntime"
    )
    options = runtime.SessionOptions()
    options.log_severity_level = 4 if quiet else 3
    options.use_deterministic_compute = True
    options.intra_op_num_threads = threads
    options.enable_mem_pattern = memory_pattern
    levels = runtime.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimize else levels.ORT_DISABLE_ALL
    try:
        return runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except list_runtime_errors(runtime) as error:
        raise CompileError(
            f"ONNX Runtime {runtime.__version__} refuses {path.name}: {error}",
            hint="'trtdeploy check' on the source model lists what stands in the way.",
        ) from error


def list_runtime_errors(runtime: Any) -> tuple[type[Exception], ...]:
    """Return what ONNX Runtime raises when it refuses or fails; no base class holds them all."""
    state = runtime.capi.onnxruntime_pybind11_state
    return (
        state.Fail, state.InvalidArgument, state.InvalidGraph, state.InvalidProtobuf,
        state.NotImplemented, state.RuntimeException, state.NoSuchFile, state.NoModel,
    )  # fmt: skip


def check_loads(path: Path) -> None:
    """Raise ``CompileError`` unless ONNX Runtime loads ``path``."""
    open_session(path, optimize=False)


def measure_amax(path: Path, samples: Iterable[Feeds]) -> dict[str, float]:
    """Return the largest finite magnitude of every floating-point output over all samples.

    Raises:
        InputError: A sample does not fit the model's inputs.
    """
    session = open_session(path, optimize=True)
    names = [output.name for output in session.get_outputs()]
    found: dict[str, float] = {}
    for position, feeds in enumerate(samples):
        try:
            results = session.run(names, dict(feeds))
        except (ValueError, RuntimeError) as error:
            raise InputError(f"sample {position} does not fit the model: {error}") from error
        for name, value in zip(names, results, strict=True):
            if isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.size:
                finite = value[np.isfinite(value)]
                amax = float(np.abs(finite).max()) if finite.size else 0.0
                found[name] = max(found.get(name, 0.0), amax)
    return found
