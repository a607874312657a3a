"""``trtdeploy.load``: choose the backend, check everything, then open the session."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from trtdeploy.backends.cuda.opening import open_device_memory
from trtdeploy.backends.engine.engine_loading import EngineRequest
from trtdeploy.backends.engine.plan_header import PlanHeader, read_plan_header
from trtdeploy.backends.engine.tensorrt_session import open_engine
from trtdeploy.backends.onnxruntime.session import OnnxRuntimeSession
from trtdeploy.backends.session import Session
from trtdeploy.backends.trt_module import import_trt
from trtdeploy.building.folder_check import check_files
from trtdeploy.building.manifest import BuiltFolder, load_folder
from trtdeploy.building.output_folder import MANIFEST_NAME
from trtdeploy.core.errors import (
    EngineFileError,
    EngineMismatchError,
    InputError,
    UsageError,
)
from trtdeploy.runtime.load_check import (
    PRODUCTS,
    check_consistency,
    check_model_files,
    read_bytes,
    read_checked_plan,
    require_engine,
)
from trtdeploy.runtime.machine_check import (
    carries_host_code,
    check_gpu,
    check_host_code,
    check_platform,
    check_version,
)
from trtdeploy.runtime.options import SessionOptions
from trtdeploy.runtime.version_rule import matches_header

_OPTIONS = {
    "tensorrt": {"gpu_index", "cuda_graph", "lean_runtime"},
    "tensorrt_rtx": {"gpu_index", "cuda_graph", "runtime_cache"},
}
_CPU_OPTIONS = {"threads"}
_MODULES = {product: module for module, product in PRODUCTS.items()}


@dataclass(frozen=True)
class LoadRequest:
    """What is to be loaded, and what the caller permits.

    Attributes:
        path: An output folder, an ONNX file, or an engine without manifest.
        allow_host_code: An engine may run code of its own on the CPU.
        allow_bare_engine: An engine without manifest may be loaded.
        options: Settings of the session.
    """

    path: Path
    allow_host_code: bool = False
    allow_bare_engine: bool = False
    options: SessionOptions = field(default_factory=SessionOptions)


def load_session(request: LoadRequest) -> Session:
    """Open a session.

    Raises:
        TrtdeployError: Something does not fit; nothing was deserialised then, except where
            TensorRT itself is the one that refuses.
    """
    path = request.path
    if path.is_dir():
        return _load_folder(request)
    try:
        header = read_plan_header(path)
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror}",
            hint="Give an output folder, an ONNX file, or an engine.",
        ) from error
    if header is not None:
        return _load_bare_engine(request, header)
    if path.suffix != ".onnx":
        kind = "is empty" if path.stat().st_size == 0 else "is neither an engine nor an ONNX file"
        raise EngineFileError(f"{path} {kind}", hint="Give an output folder or an .onnx file.")
    return _open_onnx(path, request.options)


def _load_folder(request: LoadRequest) -> Session:
    built = load_folder(request.path)
    backend = built.manifest.profile.profile.backend
    if backend == "onnxruntime":
        return _load_model(built, request.options)
    request.options.require_only(_OPTIONS[backend], PRODUCTS[backend])
    plan = read_checked_plan(built)
    check_model_files(built)
    return _load_engine(request, built, plan)


def _load_model(built: BuiltFolder, options: SessionOptions) -> Session:
    """Open the typed model itself, which is what ONNX Runtime runs."""
    engine = require_engine(built)
    check_consistency(built)
    check_files(built.path, engine.files, built.rebuild)
    return _open_onnx(built.path / engine.file, options)


def _open_onnx(path: Path, options: SessionOptions) -> Session:
    options.require_only(_CPU_OPTIONS, "ONNX Runtime")
    return OnnxRuntimeSession(path, threads=options.threads)


def _load_engine(request: LoadRequest, built: BuiltFolder, plan: bytes) -> Session:
    manifest, options = built.manifest, request.options
    compiled, backend = manifest.compile, manifest.profile.profile.backend
    if compiled is None:  # check_consistency has said so
        raise EngineFileError(f"{built.path / MANIFEST_NAME} does not say how it was compiled")
    check_platform(built, compiled)
    trt = import_trt(backend, "running engines")
    running = str(trt.__version__)
    check_version(built, compiled, running)
    check_host_code(built, compiled, options, running, allowed=request.allow_host_code)
    memory = open_device_memory(options.gpu_index)
    check_gpu(built, compiled, memory.device)
    session = open_engine(
        trt,
        plan,
        memory,
        replace(
            _ask_for_engine(request),
            allow_host_code=request.allow_host_code and carries_host_code(compiled),
            optimization_profiles=manifest.optimization_profiles,
            declared={**built.inputs, **built.outputs},
        ),
    )
    _require_tensors(session, built)
    return session


def _require_tensors(session: Session, built: BuiltFolder) -> None:
    """Compare names; a compiler may drop an input that nothing reads, and nothing else."""
    inputs = {spec.name for spec in session.inputs}
    outputs = {spec.name for spec in session.outputs}
    if outputs != set(built.outputs) or not inputs <= set(built.inputs):
        session.close()
        raise EngineMismatchError(
            f"the engine in {built.path} has inputs {sorted(inputs)} and outputs "
            f"{sorted(outputs)}, and its manifest says {sorted(built.inputs)} and "
            f"{sorted(built.outputs)}",
            hint=f"Build again: {built.rebuild}",
        )


def _load_bare_engine(request: LoadRequest, header: PlanHeader) -> Session:
    path, options = request.path, request.options
    if (path.parent / MANIFEST_NAME).is_file():
        raise UsageError(
            f"{path} is the engine of an output folder, whose manifest says what it must be",
            hint=f"Load the folder: load({str(path.parent)!r})",
        )
    if not request.allow_bare_engine:
        raise UsageError(
            f"{path} is an engine of {header.product} {header.version} without a manifest: nothing "
            "says which model, precision, GPU and sizes it is for, nor that it is intact",
            hint="Build it with trtdeploy, or, if you trust it: load(path, allow_bare_engine=True)",
        )
    module = _MODULES[header.product]
    options.require_only(_OPTIONS[module], header.product)
    trt = import_trt(module, "running engines")
    running = str(trt.__version__)
    # Without a manifest nobody knows whether it is version-compatible.
    if not matches_header(running, header.version) and not request.allow_host_code:
        raise EngineMismatchError(
            f"{path} was made by {header.product} {header.version}, and this machine has "
            f"{header.product} {running}; an engine runs on exactly the version that compiled it",
            hint="Compile it again here. If it is version-compatible and you trust it: "
            "load(path, allow_bare_engine=True, allow_host_code=True)",
        )
    plan = read_bytes(path)[header.offset :]
    return open_engine(trt, plan, open_device_memory(options.gpu_index), _ask_for_engine(request))


def _ask_for_engine(request: LoadRequest) -> EngineRequest:
    options = request.options
    return EngineRequest(
        allow_host_code=request.allow_host_code,
        lean_runtime=_to_path(options.lean_runtime),
        runtime_cache=_to_path(options.runtime_cache),
        cuda_graph=options.cuda_graph,
    )


def _to_path(given: str | Path | None) -> Path | None:
    return None if given is None else Path(given)
