"""Geometry of the bars of one output: relative L2 error, tolerance and noise floor per point."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trtdeploy.parity.result import OutputComparison, Verdict
from trtdeploy.report.number_text import format_figure, format_share, shorten

WIDTH = 300
ROW = 36
_TOP, _AXIS, _MARGIN = 2, 22, 14
_LABEL_CHARACTERS = 36
_TITLE_CHARACTERS = 200
_FEWEST_DECADES, _MOST_DECADES = 3, 12
_LOWEST, _HIGHEST = -30, 30
_MOST_TICKS = 5


@dataclass(frozen=True)
class LogScale:
    """Decades from ``10**low`` to ``10**high`` drawn from ``start`` over ``length`` units."""

    low: int
    high: int
    start: float
    length: float

    def place(self, value: float) -> float:
        """Return the position of a value; what lies outside is drawn at the end."""
        if not value > 0:
            return self.start
        exponent = self.high if math.isinf(value) else math.log10(value)
        share = (exponent - self.low) / (self.high - self.low)
        return round(self.start + self.length * min(1.0, max(0.0, share)), 1)

    def list_ticks(self) -> list[tuple[float, int]]:
        """Return position and exponent of the decades that get a line."""
        step = math.ceil((self.high - self.low + 1) / _MOST_TICKS)
        return [(self.place(10.0**e), e) for e in range(self.low, self.high + 1, step)]


@dataclass(frozen=True)
class ErrorBar:
    """One point.

    Attributes:
        label: Name of the point, short enough for its place.
        y: Top of its row.
        length: Of the bar, from the start of the axis; 0 for no error, and for NaN.
        has_error: There is a relative L2 error to draw.
        tolerance_x: Where the tolerance lies; None where atol and rtol alone decide.
        noise_x: Where the noise floor lies; None when it was not measured.
    """

    label: str
    title: str
    verdict: Verdict
    y: float
    length: float
    has_error: bool
    text: str
    tolerance_x: float | None
    noise_x: float | None


@dataclass(frozen=True)
class ErrorBars:
    """The chart of one output."""

    rows: tuple[ErrorBar, ...]
    ticks: tuple[tuple[float, int], ...]
    start: float
    top: float
    height: float

    @property
    def has_errors(self) -> bool:
        """False for an output, of integers for instance, that has no relative L2 error anywhere."""
        return any(row.has_error for row in self.rows)

    @property
    def axis_y(self) -> float:
        """Where the axis lies."""
        return self.height - _AXIS


def fit_error_scale(entries: Iterable[OutputComparison]) -> LogScale:
    """Return an axis for errors, tolerances and noise floors of all outputs that are compared."""
    values: list[float | None] = []
    for entry in entries:
        if not is_exact(entry):
            values += [entry.metrics.relative_l2, entry.tolerance.relative_l2, entry.noise_floor]
    return fit_log_scale(values, _MARGIN, WIDTH - 2 * _MARGIN)


def fit_log_scale(values: Iterable[float | None], start: float, length: float) -> LogScale:
    """Return a scale over every positive finite value, whole decades wide."""
    found = [math.log10(v) for v in values if v is not None and v > 0 and math.isfinite(v)]
    high = min(_HIGHEST, math.floor(max(found, default=0)) + 1)
    low = max(_LOWEST, high - _MOST_DECADES, math.floor(min(found, default=high)))
    return LogScale(min(low, high - _FEWEST_DECADES), high, start, length)


def draw_error_bars(entries: Sequence[tuple[str, OutputComparison]], scale: LogScale) -> ErrorBars:
    """Return the chart of one output.

    Args:
        entries: Name of each point, and the output there.
        scale: From ``fit_error_scale``.
    """
    rows = []
    for index, (label, entry) in enumerate(entries):
        error, noise = entry.metrics.relative_l2, entry.noise_floor
        allowed = entry.tolerance.relative_l2
        rows.append(
            ErrorBar(
                label=shorten(label, _LABEL_CHARACTERS),
                title=shorten(f"{label}: {describe_error(entry)}", _TITLE_CHARACTERS),
                verdict=entry.verdict,
                y=_TOP + index * ROW,
                length=round(scale.place(error or 0.0) - scale.start, 1),
                has_error=error is not None and not is_exact(entry),
                text=format_error(entry),
                tolerance_x=None if allowed is None else scale.place(allowed),
                noise_x=scale.place(noise) if noise else None,
            )
        )
    height = _TOP + len(rows) * ROW + _AXIS
    return ErrorBars(tuple(rows), tuple(scale.list_ticks()), scale.start, _TOP, height)


def is_exact(entry: OutputComparison) -> bool:
    """Return whether equality decides: counts, labels, booleans, text."""
    return entry.metrics.equal_fraction is not None and entry.tolerance.relative_l2 is None


def format_error(entry: OutputComparison) -> str:
    """Return the relative L2 error, or the share of equal elements where equality decides."""
    if is_exact(entry):
        return f"{format_share(entry.metrics.equal_fraction)} equal"
    return format_figure(entry.metrics.relative_l2)


def describe_error(entry: OutputComparison) -> str:
    """Return error, tolerance, its origin and the noise floor in one line."""
    metrics, tolerance = entry.metrics, entry.tolerance
    if is_exact(entry):
        return f"{format_share(metrics.equal_fraction)} of the elements equal ({tolerance.origin})"
    parts = [f"relative L2 error {format_figure(metrics.relative_l2)}"]
    if tolerance.relative_l2 is None:
        parts.append(f"tolerance atol and rtol ({tolerance.origin})")
    else:
        parts.append(f"tolerance {format_figure(tolerance.relative_l2)} ({tolerance.origin})")
    if entry.noise_floor is not None:
        parts.append(f"noise floor {format_figure(entry.noise_floor)}")
    return ", ".join(parts)
