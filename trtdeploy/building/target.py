"""Whether this machine can compile for a device, and what to do when it cannot.

NVIDIA's engine-compatibility page (11.1.0): a TensorRT engine belongs to the GPU model that
compiled it, unless it was built for hardware compatibility; kernels are chosen by timing them, and
two models of one compute capability differ in processors, memory and clocks (an AGX Orin has twice
those of an Orin Nano). An engine of TensorRT-RTX belongs to compute capabilities only, as its
kernels are compiled when it is loaded.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from trtdeploy.backends.cuda.local_gpu import LocalGpu, find_local_gpu
from trtdeploy.backends.installed import INSTALL, is_installed
from trtdeploy.config.combination import find_target_compute_capabilities
from trtdeploy.config.device import DeviceSpec
from trtdeploy.config.loading import ResolvedProfile, list_devices, load_device
from trtdeploy.core.errors import MissingDependencyError

_PORTABLE = frozenset({"ampere_plus", "same_compute_capability"})
_BRANDS = frozenset({"NVIDIA", "GEFORCE", "JETSON", "GPU"})
_MODE = re.compile(r"\s+in \w+ mode.*|\(.*")
_MEMORY = re.compile(r"\b(\d+)\s*GB\b", re.IGNORECASE)
_MEMORY_KIND = re.compile(r"\bHBM\w*", re.IGNORECASE)
_FORM = re.compile(r"\b(SXM|PCIE|NVL)\d*\b", re.IGNORECASE)


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


@dataclass(frozen=True)
class GpuModel:
    """What a name says of a GPU.

    Attributes:
        words: Model name in capitals, e.g. ``{"RTX", "4090"}``.
        memory_gb: Nominal memory in 10**9 bytes; None when the name does not say.
        form: ``SXM``, ``PCIE`` or ``NVL``, which differ in processors; empty when it does not say.
    """

    words: frozenset[str]
    memory_gb: int | None
    form: str

    def contradicts(self, other: GpuModel) -> bool:
        """Tell whether both names cannot be of one model; one may say less than the other."""
        more_or_less = self.words <= other.words or other.words <= self.words
        memories = {self.memory_gb, other.memory_gb} - {None}
        forms = {self.form, other.form} - {""}
        return not more_or_less or len(memories) > 1 or len(forms) > 1


def parse_gpu_model(name: str) -> GpuModel:
    """Read ``NVIDIA A100-SXM4-80GB``, or the title of a shipped device."""
    text = _MODE.sub("", name).replace("-", " ")
    memory, form = _MEMORY.search(text), _FORM.search(text)
    for pattern in (_MEMORY, _MEMORY_KIND, _FORM):
        text = pattern.sub(" ", text)
    return GpuModel(
        words=frozenset(text.upper().split()) - _BRANDS,
        memory_gb=int(memory[1]) if memory else None,
        form=form[1].upper() if form else "",
    )


def is_same_model(device: DeviceSpec, gpu: LocalGpu) -> bool:
    """Compare names as far as both are known: the title of a user's own device may say anything."""
    if device.name not in list_devices():
        return True
    return not parse_gpu_model(device.title).contradicts(parse_gpu_model(gpu.name))


def explain_other_gpu(resolved: ResolvedProfile, gpu: LocalGpu | None) -> str:
    """Return why an engine of the profile belongs to another GPU than this one; empty if not.

    Args:
        resolved: The deploy profile.
        gpu: Of this machine; None for none.
    """
    profile, device = resolved.profile, resolved.device
    wanted = f"{device.title} (compute capability {device.compute_capability})"
    if gpu is None:
        return f"{wanted} is not in this machine"
    if gpu.compute_capability not in find_target_compute_capabilities(profile, device):
        return (
            f"{wanted}; this machine has {gpu.name} (compute capability {gpu.compute_capability})"
        )
    is_portable = profile.build.hardware_compatibility in _PORTABLE
    if profile.backend != "tensorrt" or is_portable or is_same_model(device, gpu):
        return ""
    return (
        f"{wanted}; this machine has {gpu.name}, which has the same compute capability and is "
        "another model"
    )


def find_shipped_device(gpu: LocalGpu) -> str | None:
    """Return the shipped device that a GPU is, None when no device file describes it."""
    model = parse_gpu_model(gpu.name)
    for name in list_devices():
        device = load_device(name)
        is_candidate = device.compute_capability == gpu.compute_capability
        if is_candidate and not parse_gpu_model(device.title).contradicts(model):
            return name
    return None
