"""Builder configuration: memory pools, flags, devices and the timing cache."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtdeploy.backends.compiler.compile_request import CompileRequest
from trtdeploy.backends.trt_module import assign, is_rtx, name_product, set_flag
from trtdeploy.core.errors import CompileError, NotPossibleError

if TYPE_CHECKING:
    from trtdeploy.config.deploy_profile import BuildSection

_OPTION_FLAGS = {
    "sparse_weights": "SPARSE_WEIGHTS",
    "version_compatible": "VERSION_COMPATIBLE",
    "exclude_lean_runtime": "EXCLUDE_LEAN_RUNTIME",
    "weight_streaming": "WEIGHT_STREAMING",
    "strip_plan": "STRIP_PLAN",
    "refit": "REFIT",
    "gpu_fallback": "GPU_FALLBACK",
    "debug_precision": "DEBUG",
}


def apply_options(trt: Any, builder: Any, config: Any, request: CompileRequest) -> list[str]:
    """Apply everything but precision; return the names of the flags that were set.

    Raises:
        NotPossibleError: This TensorRT or this machine lacks something the request asks for.
    """
    options = request.options
    if options.workspace is not None and not is_rtx(trt):
        # TensorRT-RTX fails outright when a limit is below what its kernels need
        config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, options.workspace)
    if options.optimization_level is not None:
        assign(trt, config, "builder_optimization_level", options.optimization_level)
    if options.aux_streams is not None:
        assign(trt, config, "max_aux_streams", options.aux_streams)
    if options.debug_precision or not is_rtx(trt):
        config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED  # the proof reads it
    _apply_hardware_compatibility(trt, config, options)
    _apply_dla(trt, builder, config, options)
    _apply_compute_capabilities(trt, config, options)
    return _apply_flags(trt, config, request)


def _apply_flags(trt: Any, config: Any, request: CompileRequest) -> list[str]:
    flags = [flag for key, flag in _OPTION_FLAGS.items() if getattr(request.options, key)]
    if request.spec.tf32:
        flags.append("TF32")
    else:
        config.clear_flag(trt.BuilderFlag.TF32)  # TensorRT sets it by default
    for name in flags:
        set_flag(trt, config, name)
    return flags


def _apply_hardware_compatibility(trt: Any, config: Any, options: BuildSection) -> None:
    if options.hardware_compatibility == "none":
        return
    level = getattr(trt.HardwareCompatibilityLevel, options.hardware_compatibility.upper(), None)
    if level is None:
        raise NotPossibleError(
            f"{name_product(trt)} has no hardware compatibility level "
            f"{options.hardware_compatibility}",
            hint="Set build.hardware_compatibility to none.",
        )
    assign(trt, config, "hardware_compatibility_level", level)


def _apply_dla(trt: Any, builder: Any, config: Any, options: BuildSection) -> None:
    if options.dla_core is None:
        return
    # every TensorRT has the API, also TensorRT-RTX and versions that support no DLA at all
    if options.dla_core >= builder.num_DLA_cores:
        raise NotPossibleError(
            f"{name_product(trt)} finds {builder.num_DLA_cores} DLA cores here; build.dla_core "
            f"asks for core {options.dla_core}",
            hint="Build on a device that has it, or remove build.dla_core.",
        )
    assign(trt, config, "default_device_type", trt.DeviceType.DLA)
    assign(trt, config, "DLA_core", options.dla_core)


def _apply_compute_capabilities(trt: Any, config: Any, options: BuildSection) -> None:
    if not options.compute_capabilities:
        return
    if not is_rtx(trt):
        raise NotPossibleError(
            f"{name_product(trt)} compiles for the GPU it runs on, not for named compute "
            "capabilities",
            hint="Use backend tensorrt_rtx, or build on the device itself.",
        )
    config.num_compute_capabilities = len(options.compute_capabilities)
    for position, number in enumerate(options.compute_capabilities):
        name = f"SM{number.replace('.', '')}"
        capability = getattr(trt.ComputeCapability, name, None)
        if capability is None or not config.set_compute_capability(capability, position):
            raise NotPossibleError(
                f"{name_product(trt)} cannot compile for {name}",
                hint="Use a device that it supports, or backend tensorrt on the device itself.",
            )


def load_timing_cache(config: Any, path: str | None) -> None:
    """Give the builder the timings of earlier builds, if there are any."""
    if path is None:
        return
    file = Path(path)
    cache = config.create_timing_cache(file.read_bytes() if file.exists() else b"")
    if cache is None or not config.set_timing_cache(cache, ignore_mismatch=False):
        # made by another device or version: start an empty one rather than mix timings
        config.set_timing_cache(config.create_timing_cache(b""), ignore_mismatch=False)


def save_timing_cache(config: Any, path: str | None) -> None:
    """Write the builder's timings to ``path``."""
    if path is None:
        return
    cache = config.get_timing_cache()
    if cache is None:
        raise CompileError("TensorRT returned no timing cache")
    temporary = Path(path + ".tmp")
    temporary.write_bytes(memoryview(cache.serialize()))
    temporary.replace(path)
