"""Which NVIDIA GPU this machine has, asked without any Python package."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

_TEGRA = {"nvidia,tegra234": ("Jetson Orin", "8.7"), "nvidia,tegra264": ("Jetson Thor", "11.0")}
"""Device-tree names of Jetson chips; nvidia-smi does not report them on JetPack 6."""


@dataclass(frozen=True)
class LocalGpu:
    """A GPU of this machine.

    Attributes:
        name: As the driver calls it.
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
            return LocalGpu(name, capability)
    return None
