"""The build as the page shows it: steps, shapes, engine, precision."""

from __future__ import annotations

from dataclasses import dataclass

from trtdeploy.core.ranges import ShapeRange, ValueRange
from trtdeploy.core.units import format_bytes
from trtdeploy.report.document import BuildReport
from trtdeploy.report.number_text import TIMES, count_noun, format_seconds, format_sizes


@dataclass(frozen=True)
class StepRow:
    """One step with its share of the longest one, in percent."""

    name: str
    status: str
    time_text: str
    percent: float
    detail: str


@dataclass(frozen=True)
class ShapeRow:
    """Sizes of one input, or values of one shape tensor, in one optimization profile."""

    profile: str
    name: str
    is_values: bool
    points: tuple[str, str, str]


def describe_engine(report: BuildReport) -> str:
    """Return file and size of the engine, or that there is none yet."""
    engine = report.engine
    if engine is None:
        return "none yet: this folder is prepared for its device"
    return f"{engine.file}, {format_bytes(engine.bytes)}"


def describe_precision(report: BuildReport) -> str:
    """Return how many nodes compute in which type."""
    counts = sorted(report.precision.counts.items(), key=lambda item: -item[1])
    return ", ".join(f"{count_noun(count, 'node')} {dtype}" for dtype, count in counts)


def list_steps(report: BuildReport) -> tuple[StepRow, ...]:
    """Return the steps in the order they ran."""
    longest = max((step.seconds for step in report.steps), default=0.0) or 1.0
    return tuple(
        StepRow(
            step.name,
            step.status,
            "skipped" if step.status == "skipped" else format_seconds(step.seconds),
            round(100 * step.seconds / longest, 1),
            step.detail,
        )
        for step in report.steps
    )


def list_shapes(report: BuildReport) -> tuple[ShapeRow, ...]:
    """Return the sizes of every input, and the values of shape tensors, by optimization profile."""
    rows = []
    for profile in report.optimization_profiles:
        for name, table in profile.shapes.items():
            rows.append(ShapeRow(profile.name, name, False, _format_points(table, TIMES)))
        for name, values in profile.values.items():
            rows.append(ShapeRow(profile.name, name, True, _format_points(values, ", ")))
    return tuple(rows)


def _format_points(table: ShapeRange | ValueRange, separator: str) -> tuple[str, str, str]:
    points = (table.min, table.opt, table.max)
    if separator == TIMES:
        low, usual, high = (format_sizes(point, TIMES) for point in points)
    else:
        low, usual, high = (separator.join(map(str, point)) for point in points)
    return low, usual, high
