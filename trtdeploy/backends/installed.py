"""What this machine has and a result was made with; vendor packages are not imported."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata, util

from trtdeploy import __version__

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


@dataclass(frozen=True)
class Environment:
    """What a result was made with.

    Attributes:
        trtdeploy: Its version.
        python: Its version.
        platform: System and processor, e.g. ``Linux x86_64``.
        packages: Version of every vendor package that is installed.
    """

    trtdeploy: str
    python: str
    platform: str
    packages: Mapping[str, str]


def describe_platform() -> str:
    """Return system and processor, e.g. ``Linux x86_64``."""
    return f"{platform.system()} {platform.machine()}"


def describe_environment() -> Environment:
    """Return the versions of this machine."""
    found = {name: find_installed(name).version for name in PACKAGES}
    return Environment(
        trtdeploy=__version__,
        python=platform.python_version(),
        platform=describe_platform(),
        packages={name: version for name, version in found.items() if version},
    )
