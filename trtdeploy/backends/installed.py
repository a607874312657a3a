"""Which vendor packages this machine has, without importing them."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import metadata, util

PACKAGES: dict[str, tuple[str, ...]] = {
    "tensorrt": ("tensorrt", "tensorrt_cu13", "tensorrt_cu12"),
    "tensorrt_rtx": ("tensorrt_rtx", "tensorrt_rtx_cu13", "tensorrt_rtx_cu12"),
    "onnxruntime": ("onnxruntime", "onnxruntime-gpu"),
    "onnx": ("onnx",),
    "numpy": ("numpy",),
    "pycuda": ("pycuda",),
    "cuda": ("cuda-python", "cuda-bindings"),
}
"""Module name to the distributions that may provide it."""

INSTALL = {
    "tensorrt": "pip install tensorrt",
    "tensorrt_rtx": "pip install tensorrt-rtx",
    "onnxruntime": "pip install onnxruntime",
    "pycuda": "pip install pycuda",
    "cuda": "pip install cuda-python",
}
"""Module name to the command that installs it: the vendor's own package, however trtdeploy came."""


@dataclass(frozen=True)
class InstalledPackage:
    """A package that may be present.

    Attributes:
        module: Import name.
        version: Distribution version, ``"unknown"`` for a module without metadata (JetPack's
            system packages), None when absent.
    """

    module: str
    version: str | None


def find_installed(module: str) -> InstalledPackage:
    """Return whether ``module`` is installed, and its version."""
    if util.find_spec(module) is None:
        return InstalledPackage(module, None)
    for distribution in PACKAGES.get(module, (module,)):
        try:
            return InstalledPackage(module, metadata.version(distribution))
        except metadata.PackageNotFoundError:
            continue
    return InstalledPackage(module, "unknown")


def is_installed(module: str) -> bool:
    """True when ``module`` can be imported as far as its files tell."""
    return find_installed(module).version is not None
