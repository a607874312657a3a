"""Whether this machine can compile for a device, and what to do when it cannot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from trtdeploy.backends.cuda.local_gpu import LocalGpu, find_local_gpu
from trtdeploy.backends.installed import INSTALL, is_installed
from trtdeploy.building.gpu_model import explain_other_gpu, find_shipped_device
from trtdeploy.config.loading import ResolvedProfile
from trtdeploy.core.errors import MissingDependencyError


@dataclass(frozen=True)
class CompileAbility:
    """Answer of ``judge_ability``.

    Attributes:
        possible: This machine can produce the artefact.
        reason: Why not.
        next_step: What the user does instead.
    """

    possible: bool
    reason: str = ""
    next_step: str = ""


def judge_ability(
    resolved: ResolvedProfile,
    folder: Path,
    *,
    prepare_only: bool = False,
    find_gpu: Callable[[], LocalGpu | None] = find_local_gpu,
) -> CompileAbility:
    """Tell whether this machine can compile for the profile's device, and is asked to.

    Args:
        resolved: The deploy profile.
        folder: Where the result goes.
        prepare_only: The user wants no engine.
        find_gpu: Returns the GPU of this machine.

    Raises:
        MissingDependencyError: It could, were a package installed.
    """
    backend = resolved.profile.backend
    if prepare_only:
        return CompileAbility(False, "only the prepared folder was asked for", _advise(folder))
    if backend == "onnxruntime":
        return CompileAbility(True)
    if backend == "tensorrt_rtx":
        _require(backend, "TensorRT-RTX, which needs no GPU")
        return CompileAbility(True)
    gpu = find_gpu()
    reason = explain_other_gpu(resolved, gpu)
    if gpu is None or reason:
        return CompileAbility(
            False,
            f"TensorRT compiles on the GPU it compiles for: {reason}",
            _advise(folder) + _advise_for(gpu, resolved),
        )
    _require(backend, f"TensorRT on {gpu.name}")
    return CompileAbility(True)


def _require(module: str, what: str) -> None:
    if not is_installed(module):
        raise MissingDependencyError(
            f"this profile compiles with {what}, and the package {module} is not installed",
            hint=f"Install it with: {INSTALL[module]}   (or add --prepare-only to stop before "
            "compiling)",
        )


def _advise(folder: Path) -> str:
    return (
        f"Copy the folder {folder.name} to the device and run there: trtdeploy build {folder.name}"
    )


def _advise_for(gpu: LocalGpu | None, resolved: ResolvedProfile) -> str:
    """Say how the GPU that is here would get an engine of its own, where it is a near miss."""
    if gpu is None or gpu.compute_capability != resolved.device.compute_capability:
        return ""
    name = find_shipped_device(gpu)
    device = f"--set device={name}" if name else "a device file of your own and --set device=FILE"
    return f"   (for the {gpu.name} of this machine: build from the ONNX file with {device})"
