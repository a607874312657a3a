"""What the calibration benchmark found, and how it is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.processes import Measurement
from benchmarks.tables import (
    MEGABYTE,
    Ratio,
    Summary,
    divide,
    format_peak,
    format_ratio,
    format_versions,
    format_wall,
    render_facts,
    render_table,
    summarize,
)

OURS, REFERENCE = "trtdeploy", "modelopt"
WALL_LIMIT = 1 / 3
"""Largest wall time, divided by Model-Optimizer's."""
PEAK_LIMIT_BYTES = 600e6
GROWTH_LIMIT = 1.05
"""Largest peak with many images, divided by that with few: 1, and what an allocator varies."""

_HEADERS = (
    "model", "tool", "wall s (fastest-slowest)", "peak MB",
    "trtdeploy's wall", "trtdeploy's peak", "QuantizeLinear nodes",
)  # fmt: skip
_FLAT_HEADERS = ("images", "wall s (fastest-slowest)", "peak MB", "peak ratio")
_NONE = "-"

Runs = tuple[Measurement, ...]


@dataclass(frozen=True)
class CalibrationResult:
    """All tools on one model.

    Attributes:
        model: As shown.
        images: Calibration samples.
        method: Calibration method.
        runs: By tool, trtdeploy first; empty for a tool that failed.
        pairs: QuantizeLinear nodes that each tool wrote; None when onnx cannot read the file.
        failures: Why tools failed.
    """

    model: str
    images: int
    method: str
    runs: Mapping[str, Runs]
    pairs: Mapping[str, int | None]
    failures: Mapping[str, str]

    def summarize(self, tool: str) -> Summary | None:
        """Return the medians; None when the tool was not run or failed."""
        return _summarize(self.runs.get(tool, ()))

    def find_ratio(self, tool: str) -> Ratio | None:
        """Return trtdeploy's medians divided by the tool's; None when either failed."""
        ours, theirs = self.summarize(OURS), self.summarize(tool)
        return divide(ours, theirs) if ours and theirs and tool != OURS else None

    def to_dict(self) -> dict[str, Any]:
        """Return every run."""
        return {
            "model": self.model,
            "images": self.images,
            "method": self.method,
            "runs": {tool: _list_runs(runs) for tool, runs in self.runs.items()},
            "pairs": dict(self.pairs),
            "failures": dict(self.failures),
        }


@dataclass(frozen=True)
class FlatnessResult:
    """trtdeploy alone, with few and with many images; ``runs`` by number of images."""

    runs: Mapping[int, Runs]

    def find_growth(self, images: int) -> float | None:
        """Return the median peak divided by that of the fewest images; None after a failure."""
        few, many = _summarize(self.runs[min(self.runs)]), _summarize(self.runs[images])
        return many.peak_bytes / few.peak_bytes if few and many else None

    def to_dict(self) -> dict[str, Any]:
        """Return every run."""
        return {str(images): _list_runs(runs) for images, runs in self.runs.items()}


def list_targets(result: CalibrationResult, flatness: FlatnessResult) -> dict[str, bool | None]:
    """Return each target and whether it is kept; None when it could not be measured."""
    ours, ratio = result.summarize(OURS), result.find_ratio(REFERENCE)
    growth = flatness.find_growth(max(flatness.runs))
    return {
        "wall at most 1/3 of Model-Optimizer's": ratio and ratio.wall <= WALL_LIMIT,
        f"peak at most {PEAK_LIMIT_BYTES / MEGABYTE:.0f} MB": ours
        and ours.peak_bytes <= PEAK_LIMIT_BYTES,
        f"peak with {max(flatness.runs)} images at most {GROWTH_LIMIT:g}x that with "
        f"{min(flatness.runs)}": growth and growth <= GROWTH_LIMIT,
    }


def is_within_limits(result: CalibrationResult, flatness: FlatnessResult) -> bool:
    """Tell whether no target is missed; a peer that was not asked for leaves its target out."""
    targets = list_targets(result, flatness)
    if REFERENCE not in result.runs:
        targets = dict(list(targets.items())[1:])
    return all(targets.values())


def render_report(
    report: Mapping[str, Any], result: CalibrationResult, flatness: FlatnessResult
) -> str:
    """Return the whole report as Markdown."""
    facts = dict(report["machine"])
    facts["data"] = f"{result.images} images, {result.method}"
    facts["runs"] = f"{report['runs']} of each, in turn, medians; one more before is not counted"
    for tool, versions in report["versions"].items():
        facts[tool] = format_versions(versions)
    parts = [
        f"`{report['command']}`",
        render_facts(facts),
        render_table(_HEADERS, make_rows(result)),
        "\n".join(f"* {tool}: {reason}" for tool, reason in result.failures.items()),
        render_table(_FLAT_HEADERS, make_flatness_rows(flatness)),
        "\n".join(
            f"* {target}: {'not measured' if kept is None else 'kept' if kept else 'NOT kept'}"
            for target, kept in list_targets(result, flatness).items()
        ),
    ]
    return "\n\n".join(part for part in parts if part)


def make_rows(result: CalibrationResult) -> list[tuple[str, ...]]:
    """Return one row per tool; ratios are trtdeploy's figure divided by that tool's."""
    rows: list[tuple[str, ...]] = []
    for number, tool in enumerate(result.runs):
        summary, ratio = result.summarize(tool), result.find_ratio(tool)
        pairs = result.pairs.get(tool)
        rows.append(
            (
                result.model if number == 0 else "",
                tool,
                format_wall(summary) if summary else "failed",
                format_peak(summary) if summary else _NONE,
                format_ratio(ratio.wall) if ratio else _NONE,
                format_ratio(ratio.peak) if ratio else _NONE,
                _NONE if pairs is None else str(pairs),
            )
        )
    return rows


def make_flatness_rows(flatness: FlatnessResult) -> list[tuple[str, ...]]:
    """Return one row per number of images; ratios are to the fewest."""
    rows: list[tuple[str, ...]] = []
    for images, runs in flatness.runs.items():
        summary, growth = _summarize(runs), flatness.find_growth(images)
        is_first = images == min(flatness.runs)
        rows.append(
            (
                str(images),
                format_wall(summary) if summary else "failed",
                format_peak(summary) if summary else _NONE,
                _NONE if is_first or growth is None else format_ratio(growth),
            )
        )
    return rows


def _summarize(runs: Runs) -> Summary | None:
    return None if not runs or any(run.failed for run in runs) else summarize(runs)


def _list_runs(runs: Runs) -> list[dict[str, float]]:
    return [{"wall_s": r.wall_s, "cpu_s": r.cpu_s, "peak_bytes": r.peak_bytes} for r in runs]
