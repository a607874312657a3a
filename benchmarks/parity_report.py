"""What the parity benchmark found, and how it is shown."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.processes import Measurement
from benchmarks.tables import (
    MEGABYTE,
    format_peak,
    format_ratio,
    format_versions,
    format_wall,
    render_facts,
    render_table,
    summarize,
)

EMULATED, BASELINE, OPTIMIZED = "emulated fp16", "FP32 baseline", "FP32, optimised"
SPEED_LIMIT = 4.0
"""Largest time of an emulated run, divided by the baseline's."""
PEAK_LIMIT = 1.05
"""Largest peak memory, divided by that of the fewest samples: 1, and what an allocator varies."""

_SPEED_HEADERS = ("model", "one run", "wall ms (fastest-slowest)", "emulated takes", "target")
_MEMORY_HEADERS = (
    "samples", "data MB", "wall s (fastest-slowest)", "peak MB", "peak ratio", "target",
)  # fmt: skip
_NONE = "-"


@dataclass(frozen=True)
class SpeedResult:
    """Wall times of single runs on one model.

    Attributes:
        model: As shown.
        runs: Seconds by program: ``EMULATED``, ``BASELINE`` and ``OPTIMIZED``.
    """

    model: str
    runs: Mapping[str, tuple[float, ...]]

    def find_median(self, program: str) -> float:
        """Return the median in seconds."""
        return statistics.median(self.runs[program])

    def find_ratio(self, program: str) -> float:
        """Return the emulated run's median divided by the program's."""
        return self.find_median(EMULATED) / self.find_median(program)

    def to_dict(self) -> dict[str, Any]:
        """Return every run, and the ratios."""
        ratios = {name: self.find_ratio(name) for name in self.runs if name != EMULATED}
        runs = {name: list(seconds) for name, seconds in self.runs.items()}
        return {"model": self.model, "runs_s": runs, "emulated_takes": ratios}


@dataclass(frozen=True)
class MemoryResult:
    """Whole checks.

    Attributes:
        sample_bytes: Size of one sample.
        runs: By number of samples; a failed one stands alone.
    """

    sample_bytes: int
    runs: Mapping[int, tuple[Measurement, ...]]

    @property
    def failures(self) -> dict[int, str]:
        """Why checks failed, by number of samples."""
        return {count: runs[0].reason for count, runs in self.runs.items() if runs[0].failed}

    def find_ratio(self, count: int) -> float | None:
        """Return the median peak divided by that of the fewest samples; None after a failure."""
        fewest = min(self.runs)
        if {fewest, count} & set(self.failures):
            return None
        return summarize(self.runs[count]).peak_bytes / summarize(self.runs[fewest]).peak_bytes

    def to_dict(self) -> dict[str, Any]:
        """Return every run, and the ratios."""
        checks = [
            {
                "samples": count,
                "runs": [{"wall_s": run.wall_s, "peak_bytes": run.peak_bytes} for run in runs],
                "peak_ratio": self.find_ratio(count),
                "failure": self.failures.get(count),
            }
            for count, runs in self.runs.items()
        ]
        return {"sample_bytes": self.sample_bytes, "checks": checks}


def is_within_limits(speed: SpeedResult, memory: MemoryResult) -> bool:
    """Tell whether both limits are kept and nothing failed."""
    ratios = [memory.find_ratio(count) for count in memory.runs]
    keeps = all(ratio is not None and ratio <= PEAK_LIMIT for ratio in ratios)
    return keeps and speed.find_ratio(BASELINE) <= SPEED_LIMIT


def render_report(report: Mapping[str, Any], speed: SpeedResult, memory: MemoryResult) -> str:
    """Return the whole report as Markdown."""
    facts = dict(report["machine"])
    facts["runs"] = f"{report['runs']} of each session, in turn, after one that is not counted"
    facts["checks"] = f"{report['checks']} with each number of samples, in turn, fresh processes"
    facts["versions"] = format_versions(report["versions"])
    verdict = "kept" if is_within_limits(speed, memory) else "NOT kept"
    parts = [
        f"`{report['command']}`",
        render_facts(facts),
        render_table(_SPEED_HEADERS, make_speed_rows(speed)),
        render_table(_MEMORY_HEADERS, make_memory_rows(memory)),
        "\n".join(f"* {count} samples: {reason}" for count, reason in memory.failures.items()),
        f"Both targets are {verdict}.",
    ]
    return "\n\n".join(part for part in parts if part)


def make_speed_rows(speed: SpeedResult) -> list[tuple[str, ...]]:
    """Return one row per program; only the baseline as the check runs it has a target."""
    rows: list[tuple[str, ...]] = []
    for number, (name, runs) in enumerate(speed.runs.items()):
        spread = f" ({min(runs) * 1e3:.1f}-{max(runs) * 1e3:.1f})" if len(runs) > 1 else ""
        rows.append(
            (
                speed.model if number == 0 else "",
                name,
                f"{speed.find_median(name) * 1e3:.1f}{spread}",
                _NONE if name == EMULATED else format_ratio(speed.find_ratio(name)),
                f"at most {SPEED_LIMIT:g}x" if name == BASELINE else _NONE,
            )
        )
    return rows


def make_memory_rows(memory: MemoryResult) -> list[tuple[str, ...]]:
    """Return one row per number of samples; ratios are to the fewest."""
    rows: list[tuple[str, ...]] = []
    for count, runs in memory.runs.items():
        summary = None if count in memory.failures else summarize(runs)
        ratio = memory.find_ratio(count)
        is_first = count == min(memory.runs)
        rows.append(
            (
                str(count),
                f"{count * memory.sample_bytes / MEGABYTE:.1f}",
                format_wall(summary) if summary else "failed",
                format_peak(summary) if summary else _NONE,
                _NONE if is_first or ratio is None else format_ratio(ratio),
                _NONE if is_first else f"at most {PEAK_LIMIT:g}x",
            )
        )
    return rows
