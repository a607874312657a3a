"""Medians, ratios and Markdown tables."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.processes import Measurement

MEGABYTE = 1e6


@dataclass(frozen=True)
class Summary:
    """Several runs of one program on one model.

    Attributes:
        runs: How many.
        wall_s: Median wall time.
        fastest_s: Shortest wall time.
        slowest_s: Longest wall time.
        peak_bytes: Median peak memory.
    """

    runs: int
    wall_s: float
    fastest_s: float
    slowest_s: float
    peak_bytes: float

    def to_dict(self) -> dict[str, float]:
        """Return the figures by name."""
        return asdict(self)


def summarize(measurements: Sequence[Measurement]) -> Summary:
    """Return medians over ``measurements``.

    Raises:
        ValueError: There are none, or one of them failed.
    """
    if not measurements:
        raise ValueError("there is nothing to summarize")
    if any(measurement.failed for measurement in measurements):
        raise ValueError("a failed run has no meaningful time")
    walls = [measurement.wall_s for measurement in measurements]
    return Summary(
        runs=len(walls),
        wall_s=statistics.median(walls),
        fastest_s=min(walls),
        slowest_s=max(walls),
        peak_bytes=statistics.median(m.peak_bytes for m in measurements),
    )


@dataclass(frozen=True)
class Ratio:
    """One program's medians divided by another's; below 1 is better.

    Attributes:
        wall: Of the wall times.
        peak: Of the peak memories.
    """

    wall: float
    peak: float


def divide(ours: Summary, peers: Summary) -> Ratio:
    """Return how much of the peer's time and memory ``ours`` takes."""
    return Ratio(ours.wall_s / peers.wall_s, ours.peak_bytes / peers.peak_bytes)


def format_wall(summary: Summary) -> str:
    """Return ``0.412 (0.400-0.550)``: median, fastest and slowest, in seconds."""
    if summary.runs == 1:
        return f"{summary.wall_s:.3f}"
    return f"{summary.wall_s:.3f} ({summary.fastest_s:.3f}-{summary.slowest_s:.3f})"


def format_peak(summary: Summary) -> str:
    """Return the median peak in megabytes (10^6 bytes)."""
    return f"{summary.peak_bytes / MEGABYTE:.0f}"


def format_ratio(value: float) -> str:
    """Return ``0.43x``."""
    return f"{value:.2f}x"


def format_versions(versions: Mapping[str, str]) -> str:
    """Return ``onnx 1.23.2, numpy 2.4.6``."""
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def render_table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table with aligned columns.

    Raises:
        ValueError: A row has another number of cells than there are headers.
    """
    cells = [[str(cell).replace("|", "\\|") for cell in row] for row in (headers, *rows)]
    if any(len(row) != len(headers) for row in cells):
        raise ValueError(f"every row needs {len(headers)} cells")
    widths = [max(len(row[column]) for row in cells) for column in range(len(headers))]
    lines = [
        "| " + " | ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) + " |"
        for row in cells
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def render_facts(facts: Mapping[str, Any]) -> str:
    """Return a Markdown list of names and values; empty values are left out."""
    return "\n".join(f"* {name}: {value}" for name, value in facts.items() if value)
