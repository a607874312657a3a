"""From the bytes of a plan to an engine and its execution context."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trtdeploy.backends.compiler.compiler_log import make_logger
from trtdeploy.backends.engine.runtime_log import RuntimeLog
from trtdeploy.backends.trt_module import name_product
from trtdeploy.core.errors import (
    EngineFileError,
    EngineMismatchError,
    ExecutionError,
    NotPossibleError,
)
from trtdeploy.core.ranges import OptimizationProfile
from trtdeploy.core.tensors import Shape


@dataclass(frozen=True)
class EngineRequest:
    """How an engine is to be loaded.

    Attributes:
        allow_host_code: Let the plan run code on the CPU: version-compatible plans carry a runtime.
        lean_runtime: Library that runs a version-compatible plan which carries none.
        runtime_cache: TensorRT-RTX keeps the kernels it compiles at load here; None keeps nothing.
        cuda_graph: Capture each combination of sizes as a CUDA graph and replay it.
        optimization_profiles: As the manifest has them; empty where there is none.
        declared: Shapes of inputs and outputs with the model's names for sizes that vary.
    """

    allow_host_code: bool = False
    lean_runtime: Path | None = None
    runtime_cache: Path | None = None
    cuda_graph: bool = False
    optimization_profiles: tuple[OptimizationProfile, ...] = ()
    declared: Mapping[str, Shape | None] = field(default_factory=dict)


@dataclass(frozen=True)
class LoadedEngine:
    """An engine and what must live as long as it does.

    Attributes:
        engine: ``trt.ICudaEngine``.
        runtimes: The runtime, and the lean one where there is one.
        log: Where TensorRT's words go.
    """

    engine: Any
    runtimes: tuple[Any, ...]
    log: RuntimeLog


def load_engine(trt: Any, plan: bytes, request: EngineRequest) -> LoadedEngine:
    """Deserialise a plan on the current device.

    Args:
        trt: The ``tensorrt`` or ``tensorrt_rtx`` module.
        plan: The plan, from its first byte.
        request: ``allow_host_code`` and ``lean_runtime`` matter here.

    Raises:
        NotPossibleError: TensorRT does not start here, or the lean runtime does not load.
        EngineMismatchError: TensorRT-RTX says what of this machine does not fit.
        EngineFileError: TensorRT refuses the plan.
    """
    log = RuntimeLog()
    logger = make_logger(trt, log)
    try:
        runtime = trt.Runtime(logger)
    except TypeError as error:  # pybind11's words for a factory that returned null
        raise NotPossibleError(
            f"{name_product(trt)} does not start on this machine: {log.take_errors()}",
            hint="It needs an NVIDIA GPU and a driver that is new enough: run 'trtdeploy doctor'.",
        ) from error
    runtimes: tuple[Any, ...] = (runtime,)
    if request.allow_host_code:
        runtime.engine_host_code_allowed = True
    if request.lean_runtime is not None:
        lean = runtime.load_runtime(str(request.lean_runtime))
        if lean is None:
            raise NotPossibleError(
                f"{name_product(trt)} cannot load the lean runtime {request.lean_runtime}: "
                f"{log.take_errors()}",
                hint="Give the libnvinfer_lean.so of the TensorRT that built the engine.",
            )
        runtimes = (runtime, lean)
    _check_validity(trt, runtime, plan)
    engine = runtimes[-1].deserialize_cuda_engine(plan)
    if engine is None:
        raise EngineFileError(f"{name_product(trt)} refuses the engine: {log.take_errors()}")
    return LoadedEngine(engine, runtimes, log)


def _check_validity(trt: Any, runtime: Any, plan: bytes) -> None:
    """Ask TensorRT-RTX, the only one that answers before it deserialises."""
    ask = getattr(runtime, "get_engine_validity", None)
    if ask is None:
        return
    validity, bits = ask(plan)
    if validity != trt.EngineValidity.INVALID:
        return
    causes = [
        name.lower().replace("_", " ")
        for name, member in trt.EngineInvalidityDiagnostics.__members__.items()
        if int(bits) & int(member)
    ]
    raise EngineMismatchError(
        f"{name_product(trt)} says that the engine is not valid on this machine: "
        f"{', '.join(causes) or 'it gives no reason'}",
        hint="Compile it again with the TensorRT-RTX of this machine.",
    )


def create_context(trt: Any, loaded: LoadedEngine, request: EngineRequest) -> tuple[Any, Any]:
    """Return the execution context, and the runtime cache of TensorRT-RTX or None.

    Raises:
        NotPossibleError: A runtime cache is asked for, and this TensorRT has none.
        ExecutionError: No context; most often the GPU has too little memory.
    """
    engine = loaded.engine
    config, cache = None, None
    if request.runtime_cache is not None or (request.cuda_graph and captures_itself(trt)):
        config, cache = _configure(trt, engine, request)
    context = engine.create_execution_context(*([] if config is None else [config]))
    if context is None:
        raise ExecutionError(
            f"{name_product(trt)} cannot create an execution context: {loaded.log.take_errors()}",
            hint="Most often the GPU has too little memory left.",
        )
    return context, cache


def captures_itself(trt: Any) -> bool:
    """True where TensorRT captures CUDA graphs on its own (TensorRT-RTX)."""
    return hasattr(trt, "CudaGraphStrategy")


def _configure(trt: Any, engine: Any, request: EngineRequest) -> tuple[Any, Any]:
    if not captures_itself(trt):
        raise NotPossibleError(
            f"{name_product(trt)} has no runtime cache; only TensorRT-RTX compiles at load",
            hint="Leave runtime_cache out.",
        )
    config = engine.create_runtime_config()
    if request.cuda_graph:
        config.cuda_graph_strategy = trt.CudaGraphStrategy.WHOLE_GRAPH_CAPTURE
    if request.runtime_cache is None:
        return config, None
    cache = config.create_runtime_cache()
    if request.runtime_cache.is_file():
        # False: made by another version or GPU. Kernels are compiled anew, and it is overwritten.
        cache.deserialize(request.runtime_cache.read_bytes())
    config.set_runtime_cache(cache)
    return config, cache


def save_runtime_cache(cache: Any, path: Path) -> None:
    """Write the kernels that were compiled so far, whole or not at all."""
    content = bytes(memoryview(cache.serialize()))
    if path.is_file() and path.read_bytes() == content:
        return
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_bytes(content)
    temporary.replace(path)
