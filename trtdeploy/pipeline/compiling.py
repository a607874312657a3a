"""The compile step: from a prepared folder to an engine in it."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

from trtdeploy.backends.compile_process import compile_engine, describe_request
from trtdeploy.backends.installed import find_installed
from trtdeploy.backends.local_gpu import find_local_gpu
from trtdeploy.backends.onnxruntime_model import check_loads
from trtdeploy.backends.request import TENSORRT, CompileOptions, CompileRequest, CompileResult
from trtdeploy.config.combination import find_target_compute_capabilities
from trtdeploy.config.loading import ResolvedProfile
from trtdeploy.config.recipe import find_recipe
from trtdeploy.core.errors import CompileError
from trtdeploy.core.units import format_bytes
from trtdeploy.pipeline.environment import describe_platform
from trtdeploy.pipeline.estimate import estimate_compile_s
from trtdeploy.pipeline.manifest import describe_file
from trtdeploy.pipeline.progress import ProgressEvent
from trtdeploy.pipeline.result import ENGINE
from trtdeploy.pipeline.steps import StepRunner

ENGINE_NAME, LOG_NAME, TIMING_NAME = "model.engine", "build.log", "timing.cache"


def compile_folder(
    folder: Path,
    target: Path,
    manifest: dict[str, Any],
    resolved: ResolvedProfile,
    steps: StepRunner,
) -> None:
    """Compile the typed model of ``folder`` and enter the engine into ``manifest``.

    Args:
        folder: Where the typed model lies and the engine goes.
        target: The name ``folder`` will get; a failure leaves ``<target>.failed.log``.
        manifest: Of a prepared folder; changed in place.
        resolved: The deploy profile.
        steps: Records the step.

    Raises:
        TrtdeployError: The compiler's verdict.
    """
    with steps.run("compile") as step:
        if resolved.profile.backend == "onnxruntime":
            check_loads(folder / manifest["typed_model"]["file"])
            manifest["engine"] = manifest["typed_model"]
            manifest["status"] = ENGINE
            step.detail = "ONNX Runtime loads the typed model; it is the artefact"
            return
        log_path = folder / LOG_NAME
        request = make_compile_request(folder, manifest, resolved)
        try:
            result = _compile(folder, target, manifest, resolved, request, steps)
        except CompileError as error:
            if log_path.exists():
                kept = target.with_name(target.name + ".failed.log")
                shutil.copyfile(log_path, kept)
                error.hint = f"{error.hint} The whole log: {kept}".strip()
            raise
        manifest["engine"] = describe_file(result.engine_path)
        manifest["status"] = ENGINE
        manifest["compile"] = {
            **_describe_result(result, resolved),
            **_describe_origin(manifest, request),
        }
        size = format_bytes(manifest["engine"]["bytes"])
        step.detail = f"{size} in {result.parse_s + result.build_s:.1f} s"


def _compile(
    folder: Path,
    target: Path,
    manifest: dict[str, Any],
    resolved: ResolvedProfile,
    request: CompileRequest,
    steps: StepRunner,
) -> CompileResult:
    estimate_s = estimate_compile_s(target, manifest["source"]["sha256"])

    def report(phase: str, elapsed_s: float) -> None:
        steps.progress(ProgressEvent("compile", phase, elapsed_s, estimate_s))

    shared_cache = _find_shared_cache(resolved) if request.timing_cache_path else None
    with contextlib.suppress(OSError):  # timings are only worth time
        if shared_cache is not None and shared_cache.is_file():
            shutil.copyfile(shared_cache, folder / TIMING_NAME)
    result = compile_engine(
        request,
        folder / LOG_NAME,
        timeout_s=resolved.profile.build.timeout_s,
        progress=report,
    )
    if shared_cache is not None:
        with contextlib.suppress(OSError):
            _publish_cache(folder / TIMING_NAME, shared_cache)
    return result


def make_compile_request(
    folder: Path, manifest: dict[str, Any], resolved: ResolvedProfile
) -> CompileRequest:
    """Return what the compiler process is told, from a prepared folder's manifest."""
    profile, build = resolved.profile, resolved.profile.build
    recipe = find_recipe(profile.recipe)
    nodes = manifest["precision"]["nodes"]
    low = recipe.low.label if recipe.low else ""
    narrow = [recipe.quantized.dtype.label if recipe.quantized else "", low]
    found = {decision["dtype"] for decision in nodes.values()}
    is_rtx = profile.backend == "tensorrt_rtx"
    capabilities = find_target_compute_capabilities(profile, resolved.device) if is_rtx else ()
    return CompileRequest(
        module=profile.backend,
        model_path=str(folder / manifest["typed_model"]["file"]),
        engine_path=str(folder / ENGINE_NAME),
        recipe=recipe.name,
        weak_flags=recipe.weak_flags,
        low_dtype=next((label for label in narrow if label and label in found), ""),
        tf32=recipe.tf32 and "tf32" in resolved.device.precisions,
        typing=profile.typing,
        fp32_nodes=tuple(n for n, d in nodes.items() if low and d["dtype"] == "float32"),
        optimization_profiles=tuple(manifest["optimization_profiles"]),
        timing_cache_path=str(folder / TIMING_NAME) if build.timing_cache and not is_rtx else None,
        options=CompileOptions(
            workspace_bytes=build.workspace,
            optimization_level=build.optimization_level,
            aux_streams=build.aux_streams,
            sparse_weights=build.sparse_weights,
            hardware_compatibility=build.hardware_compatibility,
            version_compatible=build.version_compatible,
            exclude_lean_runtime=build.exclude_lean_runtime,
            weight_streaming=build.weight_streaming,
            strip_plan=build.strip_plan,
            refit=build.refit,
            dla_core=build.dla_core,
            gpu_fallback=build.gpu_fallback,
            debug_precision=build.debug_precision,
            compute_capabilities=tuple(f"SM{c.replace('.', '')}" for c in capabilities),
        ),
    )


def _describe_result(result: CompileResult, resolved: ResolvedProfile) -> dict[str, Any]:
    return {
        "backend": resolved.profile.backend,
        "version": result.version,
        "typing": result.typing,
        "flags": list(result.flags),
        "precision": result.precision,
        "warnings": list(result.warnings),
        "parse_s": round(result.parse_s, 3),
        "build_s": round(result.build_s, 3),
    }


def _describe_origin(manifest: dict[str, Any], request: CompileRequest) -> dict[str, Any]:
    """Say what the engine was made from and where; whoever loads it compares."""
    described = describe_request(request)
    for key in ("weak_flags", "fp32_nodes", "operators"):  # recipe, plan and model have them
        del described[key]
    gpu = find_local_gpu() if request.module == TENSORRT else None
    return {
        "typed_model_sha256": manifest["typed_model"]["sha256"],
        "request": described,
        "platform": describe_platform(),
        "gpu": None if gpu is None else asdict(gpu),
    }


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
