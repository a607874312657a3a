"""Can this machine run that engine? Answered before TensorRT sees a byte of it."""

from __future__ import annotations

import logging
import shlex

from trtdeploy.backends.cuda.device_memory import GpuDevice
from trtdeploy.backends.cuda.local_gpu import find_local_gpu
from trtdeploy.backends.installed import describe_platform
from trtdeploy.building.manifest import BuiltFolder, CompileRecord
from trtdeploy.core.errors import EngineMismatchError, UsageError
from trtdeploy.runtime.load_check import PRODUCTS
from trtdeploy.runtime.options import SessionOptions
from trtdeploy.runtime.version_rule import (
    explain_version_conflict,
    is_same_version,
    parse_version,
)

_AMPERE = (8, 0)

logger = logging.getLogger("trtdeploy.runtime")


def check_version(built: BuiltFolder, compiled: CompileRecord, running: str) -> None:
    """Apply the version rule.

    Args:
        built: The folder.
        compiled: How the engine was compiled.
        running: Version of the TensorRT that would run it.

    Raises:
        EngineMismatchError: With both versions.
    """
    rule = explain_version_conflict(
        compiled.version, running, version_compatible=compiled.options.version_compatible
    )
    if rule is not None:
        product = PRODUCTS[compiled.backend]
        raise EngineMismatchError(
            f"the engine in {built.path} was compiled by {product} {compiled.version}, and this "
            f"machine has {product} {running}; {rule}",
            hint=f"Install {product} {compiled.version}, or compile again here: {built.recompile}",
        )


def check_platform(built: BuiltFolder, compiled: CompileRecord) -> None:
    """Compare system and processor; plans of TensorRT-RTX are portable (NVIDIA's cpu-engines page).

    Raises:
        EngineMismatchError: With both platforms.
    """
    here = describe_platform()
    if compiled.request.module == "tensorrt" and compiled.platform != here:
        raise EngineMismatchError(
            f"the engine in {built.path} was compiled on {compiled.platform}, and this machine "
            f"is {here}; a TensorRT engine runs on the platform that compiled it",
            hint=f"Compile again here: {built.recompile}",
        )


def check_gpu(built: BuiltFolder, compiled: CompileRecord, device: GpuDevice) -> None:
    """Compare compute capabilities.

    Raises:
        EngineMismatchError: With both.
    """
    here, options = device.compute_capability, compiled.options
    if compiled.request.module == "tensorrt_rtx":
        capabilities = options.compute_capabilities
        wanted = ", ".join(capabilities)
        fits = not capabilities or here in capabilities
    else:
        wanted = "" if compiled.gpu is None else compiled.gpu.compute_capability
        is_portable = options.hardware_compatibility == "ampere_plus"
        fits = here == wanted or (is_portable and parse_version(here) >= _AMPERE)
        wanted = f"{wanted} and other GPUs from 8.0 on" if is_portable else wanted
    if not fits:
        raise EngineMismatchError(
            f"the engine in {built.path} was compiled for compute capability {wanted} "
            f"({built.manifest.profile.device.title}), and this machine has {device.name} ({here})",
            hint="Run it on that device, or build for this one: trtdeploy build "
            f"{shlex.quote(built.manifest.source.file)} --profile NAME   "
            "('trtdeploy profiles' lists them)",
        )
    name = _name_model(device)
    is_tied = options.hardware_compatibility == "none"
    if compiled.gpu is not None and is_tied and compiled.gpu.name != name:
        logger.warning(
            "the engine in %s was compiled on %s and runs on %s, another model of the same compute "
            "capability: NVIDIA warns that it may be slower, or fail; compile it here",
            built.path, compiled.gpu.name, name,
        )  # fmt: skip


def _name_model(device: GpuDevice) -> str:
    """Return the name under which compiling records a GPU: CUDA calls every Jetson by its chip."""
    local = find_local_gpu()
    is_jetson = local is not None and local.name.startswith("Jetson")
    return local.name if local is not None and is_jetson else device.name


def carries_host_code(compiled: CompileRecord) -> bool:
    """True for a plan with a lean runtime inside: loading it runs that code on the CPU."""
    options = compiled.options
    return options.version_compatible and not options.exclude_lean_runtime


def check_host_code(
    built: BuiltFolder, compiled: CompileRecord, options: SessionOptions, running: str, *,
    allowed: bool,
) -> None:  # fmt: skip
    """Require an explicit permission for an engine that runs code of its own on the CPU.

    Raises:
        UsageError: It was not given, or a lean runtime is needed or makes no sense.
    """
    if carries_host_code(compiled) and not allowed:
        raise UsageError(
            f"the engine in {built.path} is version-compatible and carries a runtime library: to "
            "load it is to execute code from that file on this machine's CPU",
            hint="If you trust where it comes from: load(path, allow_host_code=True). Or build "
            "with build.exclude_lean_runtime=true and give SessionOptions(lean_runtime=...).",
        )
    is_lean = compiled.options.exclude_lean_runtime
    needs_lean = is_lean and not is_same_version(compiled.version, running)
    if needs_lean and options.lean_runtime is None:
        raise UsageError(
            f"the engine in {built.path} is of TensorRT {compiled.version} and carries no lean "
            f"runtime; this machine has TensorRT {running}",
            hint="Give SessionOptions(lean_runtime=...): the libnvinfer_lean of that version.",
        )
    if options.lean_runtime is not None and not is_lean:
        raise UsageError(
            f"the engine in {built.path} takes no lean runtime: it was not built with "
            "version_compatible and exclude_lean_runtime",
            hint="Leave lean_runtime out.",
        )
