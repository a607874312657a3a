"""Which CUDA package is there, and the memory of a GPU through it."""

from __future__ import annotations

from importlib import util

from trtdeploy.backends.cuda.device_memory import DeviceMemory
from trtdeploy.backends.cuda.local_gpu import find_local_gpu
from trtdeploy.backends.installed import INSTALL, is_installed
from trtdeploy.core.errors import MissingDependencyError, NotPossibleError, TrtdeployError


def open_device_memory(index: int = 0) -> DeviceMemory:
    """Return the memory of one GPU: by cuda-python where it is installed, else by PyCUDA.

    Args:
        index: The GPU in CUDA's order.

    Raises:
        MissingDependencyError: Neither package is installed.
        NotPossibleError: No such GPU, or no driver for it.
    """
    if _has_cuda_python():
        from trtdeploy.backends.cuda.cuda_python_memory import open_cuda_memory

        return open_cuda_memory(index)
    if is_installed("pycuda"):
        from trtdeploy.backends.cuda.pycuda_memory import open_pycuda_memory

        return open_pycuda_memory(index)
    raise _explain_missing()


def _has_cuda_python() -> bool:
    """Other packages of NVIDIA share the name ``cuda``, so that alone says nothing."""
    parts = ("cuda.bindings.runtime", "cuda.cudart")
    return is_installed("cuda") and any(_can_find(part) for part in parts)


def _can_find(module: str) -> bool:
    try:
        return util.find_spec(module) is not None
    except ModuleNotFoundError:  # a package on the way to it is missing
        return False


def _explain_missing() -> TrtdeployError:
    """Name the package only where it would help: it brings no GPU along."""
    gpu = find_local_gpu()
    if gpu is None:
        return NotPossibleError(
            "engines run on an NVIDIA GPU, and this machine has none that its driver reports",
            hint="Run it on the device. Here, the folder's model.onnx runs in ONNX Runtime.",
        )
    return MissingDependencyError(
        f"running an engine on {gpu.name} needs cuda-python or PyCUDA, and neither is installed",
        hint=f"Install one with: {INSTALL['cuda']}   (or {INSTALL['pycuda']}, which compiles "
        "against the CUDA toolkit)",
    )
