"""The compile step: from a prepared folder to an engine in it."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

from trtdeploy.backends.compiler.compile_process import compile_engine
from trtdeploy.backends.compiler.compile_request import (
    TENSORRT,
    CompileRequest,
    CompileResult,
    EngineSpec,
)
from trtdeploy.backends.cuda.local_gpu import find_local_gpu
from trtdeploy.backends.installed import describe_platform, find_installed
from trtdeploy.backends.onnxruntime.model import check_loads
from trtdeploy.building.manifest import (
    BuiltFolder,
    CompileRecord,
    Manifest,
    describe_file,
    load_manifest,
)
from trtdeploy.building.result import ENGINE
from trtdeploy.config.combination import find_target_compute_capabilities
from trtdeploy.config.deploy_profile import BuildSection
from trtdeploy.config.loading import ResolvedProfile
from trtdeploy.config.recipe import find_recipe
from trtdeploy.core.dtypes import DType
from trtdeploy.core.errors import CompileError, InputError
from trtdeploy.core.steps import ProgressEvent, StepRunner
from trtdeploy.core.units import format_bytes
from trtdeploy.report.document import FolderFile

ENGINE_NAME, LOG_NAME, TIMING_NAME = "model.engine", "build.log", "timing.cache"
_MOST_NEIGHBOURS = 50


def compile_folder(built: BuiltFolder, target: Path, steps: StepRunner) -> Manifest:
    """Compile the typed model of a prepared folder; return its manifest with the engine.

    Args:
        built: Where the typed model lies and the engine goes.
        target: The name the folder will get; a failure leaves ``<target>.failed.log``.
        steps: Records the step.

    Raises:
        TrtdeployError: The compiler's verdict.
    """
    manifest = built.manifest
    with steps.run("compile") as step:
        if manifest.profile.profile.backend == "onnxruntime":
            model = manifest.typed_model
            check_loads(built.path / model.file)
            step.detail = "ONNX Runtime loads the typed model; it is the artefact"
            engine = FolderFile(model.file, model.bytes, model.sha256, model.files)
            return replace(manifest, status=ENGINE, engine=engine)
        log_path = built.path / LOG_NAME
        request = make_compile_request(built)
        try:
            result = _compile(built, target, request, steps)
        except CompileError as error:
            if log_path.exists():
                kept = target.with_name(target.name + ".failed.log")
                shutil.copyfile(log_path, kept)
                error.hint = f"{error.hint} The whole log: {kept}".strip()
            raise
        engine = describe_file(Path(request.engine_path))
        step.detail = f"{format_bytes(engine.bytes)} in {result.parse_s + result.build_s:.1f} s"
        compiled = CompileRecord(
            **vars(result),
            typed_model_sha256=manifest.typed_model.sha256,
            request=request.spec,
            options=request.options,
            platform=describe_platform(),
            gpu=find_local_gpu() if request.spec.module == TENSORRT else None,
        )
        return replace(manifest, status=ENGINE, engine=engine, compile=compiled)


def _compile(
    built: BuiltFolder, target: Path, request: CompileRequest, steps: StepRunner
) -> CompileResult:
    estimate_s = estimate_compile_s(target, built.manifest.source.sha256)
    folder = built.path

    def report(phase: str, elapsed_s: float) -> None:
        steps.progress(ProgressEvent("compile", phase, elapsed_s, estimate_s))

    shared_cache = _find_shared_cache(built.manifest.profile) if request.timing_cache_path else None
    with contextlib.suppress(OSError):  # timings are only worth time
        if shared_cache is not None and shared_cache.is_file():
            shutil.copyfile(shared_cache, folder / TIMING_NAME)
    result = compile_engine(
        request, folder / LOG_NAME, timeout_s=request.options.timeout_s, progress=report
    )
    if shared_cache is not None:
        with contextlib.suppress(OSError):
            _publish_cache(folder / TIMING_NAME, shared_cache)
    return result


def estimate_compile_s(target: Path, source_sha256: str) -> float | None:
    """Return how long compiling took in an earlier build of the same model, None if there is none.

    Looks at ``target`` itself and its neighbours; the build for the same place counts most.
    """
    if not target.parent.is_dir():
        return None
    neighbours = sorted(target.parent.glob("*/manifest.json"))[:_MOST_NEIGHBOURS]
    found = None
    for path in neighbours:
        folder = path.parent
        try:
            # a text search is cheaper than reading the manifests of other models
            if not path.is_file() or source_sha256.encode() not in path.read_bytes():
                continue
            manifest = load_manifest(folder)
        except (InputError, OSError):
            continue  # somebody else's folder
        seconds = sum(step.seconds for step in manifest.steps if step.name == "compile")
        if manifest.source.sha256 == source_sha256 and seconds > 0:
            found = seconds
            if folder == target:
                break
    return found


def make_compile_request(built: BuiltFolder) -> CompileRequest:
    """Return what the compiler process is told, from a prepared folder's manifest."""
    folder, manifest = built.path, built.manifest
    profile, device = manifest.profile.profile, manifest.profile.device
    recipe, nodes = find_recipe(profile.recipe), manifest.precision.nodes
    narrow = [recipe.quantized.dtype if recipe.quantized else None, recipe.low]
    found = {decision.dtype for decision in nodes.values()}
    is_rtx = profile.backend == "tensorrt_rtx"
    has_cache = profile.build.timing_cache and not is_rtx
    return CompileRequest(
        spec=EngineSpec(
            module=profile.backend,
            recipe=recipe.name,
            low_dtype=next((low.label for low in narrow if low and low in found), ""),
            tf32=recipe.tf32 and "tf32" in device.precisions,
            typing=profile.typing,
            optimization_profiles=manifest.optimization_profiles,
        ),
        options=_choose_options(manifest.profile),
        model_path=str(folder / manifest.typed_model.file),
        engine_path=str(folder / ENGINE_NAME),
        weak_flags=recipe.weak_flags,
        fp32_nodes=tuple(n for n, d in nodes.items() if recipe.low and d.dtype is DType.FLOAT32),
        timing_cache_path=str(folder / TIMING_NAME) if has_cache else None,
    )


def _choose_options(resolved: ResolvedProfile) -> BuildSection:
    """Return the builder settings of a profile, for all GPUs that TensorRT-RTX compiles for."""
    profile = resolved.profile
    is_rtx = profile.backend == "tensorrt_rtx"
    capabilities = find_target_compute_capabilities(profile, resolved.device) if is_rtx else ()
    return profile.build.model_copy(update={"compute_capabilities": tuple(capabilities)})


def _find_shared_cache(resolved: ResolvedProfile) -> Path | None:
    """Timings are worth keeping over builds, for one GPU model and one TensorRT version."""
    root = os.environ.get("TRTDEPLOY_CACHE") or os.environ.get("XDG_CACHE_HOME")
    try:
        base = Path(root) if root else Path.home() / ".cache"
    except RuntimeError:  # a user without a home
        return None
    version = find_installed(resolved.profile.backend).version
    gpu = find_local_gpu()
    timed = resolved.device.name if gpu is None else f"{gpu.name} {gpu.compute_capability}"
    name = re.sub(r"[^a-z0-9.]+", "-", f"{timed} {version}".lower())
    return base / "trtdeploy" / "timing" / f"{name}.cache"


def _publish_cache(source: Path, shared: Path) -> None:
    if not source.is_file():
        return
    shared.parent.mkdir(parents=True, exist_ok=True)
    temporary = shared.with_name(f"{shared.name}.{os.getpid()}.tmp")
    shutil.copyfile(source, temporary)
    temporary.replace(shared)
