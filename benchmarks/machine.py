"""What machine the figures come from."""

from __future__ import annotations

import os
import platform
from datetime import datetime, timezone
from pathlib import Path


def describe_machine() -> dict[str, str]:
    """Return processor, cores, memory, system and date, for people."""
    return {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": _read_entry(Path("/proc/cpuinfo"), "model name") or platform.machine(),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": _format_kibibytes(_read_entry(Path("/proc/meminfo"), "MemTotal")),
        "system": f"{platform.system()} {platform.release()}",
        "load before": " ".join(f"{load:.1f}" for load in os.getloadavg()),
    }


def _read_entry(path: Path, key: str) -> str:
    """Return the value of the first ``key : value`` line; empty where there is none."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return ""


def _format_kibibytes(text: str) -> str:
    number = text.removesuffix("kB").strip()
    return f"{int(number) / 2**20:.1f} GiB" if number.isdigit() else "unknown"
