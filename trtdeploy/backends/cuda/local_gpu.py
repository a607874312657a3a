"""Which NVIDIA GPU this machine has, asked without any Python package."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

_TEGRA = {"nvidia,tegra234": ("Jetson Orin", "8.7"), "nvidia,tegra264": ("Jetson Thor", "11.0")}
"""Device-tree names of Jetson chips; nvidia-smi does not report them on JetPack 6."""
_MODULES = {
    "p3767-0000": "Jetson Orin NX 16 GB", "p3767-0001": "Jetson Orin NX 8 GB",
    "p3767-0003": "Jetson Orin Nano 8 GB", "p3767-0004": "Jetson Orin Nano 4 GB",
    "p3767-0005": "Jetson Orin Nano 8 GB", "p3701-0000": "Jetson AGX Orin",
    "p3701-0004": "Jetson AGX Orin 32 GB", "p3701-0005": "Jetson AGX Orin 64 GB",
    "p3834-0008": "Jetson Thor T5000",
}  # fmt: skip
"""Part numbers of modules, from jetson_stats (jetson_variables.py); kits have several names."""


@dataclass(frozen=True)
class LocalGpu:
    """A GPU of this machine.

    Attributes:
        name: As the driver calls it; the module of a Jetson, where its part number is known.
        compute_capability: E.g. ``8.9``.
    """

    name: str
    compute_capability: str


def find_local_gpu(device_tree: Path = Path("/proc/device-tree/compatible")) -> LocalGpu | None:
    """Return the first GPU, or None when there is none or its driver does not answer."""
    jetson = _find_jetson(device_tree)
    if jetson is not None:
        return jetson
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    command = [program, "--query-gpu=name,compute_cap", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (subprocess.SubprocessError, OSError):
        return None
    first = done.stdout.strip().splitlines()[:1]
    name, _, capability = first[0].rpartition(",") if first else ("", "", "")
    if not name or not capability.strip().replace(".", "").isdigit():
        return None
    return LocalGpu(name.strip(), capability.strip())


def _find_jetson(device_tree: Path) -> LocalGpu | None:
    if not device_tree.is_file():
        return None
    text = device_tree.read_bytes().decode("ascii", errors="ignore")
    for chip, (name, capability) in _TEGRA.items():
        if chip in text:
            module = next((title for part, title in _MODULES.items() if part in text), name)
            return LocalGpu(module, capability)
    return None
