"""Whether this machine can compile for a device, and what to do when it cannot."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trtdeploy.backends.installed import is_installed
from trtdeploy.backends.local_gpu import LocalGpu, find_local_gpu
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
    resolved: ResolvedProfile, folder: Path, *, prepare_only: bool = False
) -> CompileAbility:
    """Tell whether this machine can compile for the profile's device, and is asked to.

    Raises:
        MissingDependencyError: It could, were a package installed.
    """
    backend, device = resolved.profile.backend, resolved.device
    if prepare_only:
        return CompileAbility(False, "only the prepared folder was asked for", _advise(folder))
    if backend == "onnxruntime":
        return CompileAbility(True)
    if backend == "tensorrt_rtx":
        _require(backend, "TensorRT-RTX, which needs no GPU", "pip install 'trtdeploy[rtx]'")
        return CompileAbility(True)
    gpu = find_local_gpu()
    if gpu is None or gpu.compute_capability != device.compute_capability:
        return CompileAbility(False, _explain(gpu, resolved), _advise(folder))
    _require(backend, f"TensorRT on {gpu.name}", "pip install 'trtdeploy[tensorrt]'")
    return CompileAbility(True)


def _require(module: str, what: str, install: str) -> None:
    if not is_installed(module):
        raise MissingDependencyError(
            f"this profile compiles with {what}, and the package {module} is not installed",
            hint=f"Install it with: {install}   (or add --prepare-only to stop before compiling)",
        )


def _explain(gpu: LocalGpu | None, resolved: ResolvedProfile) -> str:
    device = resolved.device
    wanted = f"{device.title} (compute capability {device.compute_capability})"
    if gpu is None:
        return f"TensorRT compiles on the GPU it compiles for; {wanted} is not in this machine"
    return (
        f"TensorRT compiles on the GPU it compiles for: {wanted}; this machine has "
        f"{gpu.name} (compute capability {gpu.compute_capability})"
    )


def _advise(folder: Path) -> str:
    return (
        f"Copy the folder {folder.name} to the device and run there: trtdeploy build {folder.name}"
    )
