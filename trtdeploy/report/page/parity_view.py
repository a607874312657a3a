"""The parity section as the page shows it: concerns, grid, one panel per output, figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trtdeploy.parity.result import ParityReport, Verdict, worst_verdict
from trtdeploy.report.comparison import Comparison, list_comparisons
from trtdeploy.report.number_text import TIMES, format_sizes
from trtdeploy.report.page.error_bars import (
    ErrorBars,
    LogScale,
    describe_error,
    draw_error_bars,
    fit_error_scale,
)
from trtdeploy.report.page.error_histogram import ErrorHistogram, draw_histogram
from trtdeploy.report.page.figure_table import FigureTable, build_figure_table
from trtdeploy.report.page.listing import Listing, limit_entries

MOST_CONCERNS, MOST_PANELS, MOST_BARS, MOST_FIGURES = 20, 24, 24, 300
MOST_GRID_ROWS = 200


@dataclass(frozen=True)
class Concern:
    """A comparison, or a whole point, that did not pass.

    Attributes:
        verdict: Suspect or fail.
        name: Of the output; empty for a point.
        reasons: One sentence each.
        figures: Error, tolerance and noise floor in one line; empty for a point.
    """

    verdict: Verdict
    name: str
    point_name: str
    reasons: tuple[str, ...]
    figures: str


@dataclass(frozen=True)
class GridRow:
    """One output at every point; None where the point has no such output."""

    name: str
    cells: tuple[Comparison | None, ...]


@dataclass(frozen=True)
class OutputPanel:
    """Charts of one output.

    Attributes:
        type_text: Shape at the last point and element types.
        origin: Where its tolerance comes from.
        bars: Errors by point.
        noise_sources: What the noise floors were measured with.
        notes: Reasons of points that pass: ties, changed types, blind inputs.
        hidden_points: Points without a bar.
        histogram: Errors by decade, all points together.
    """

    name: str
    verdict: Verdict
    type_text: str
    origin: str
    noise_sources: tuple[str, ...]
    notes: tuple[str, ...]
    bars: ErrorBars
    hidden_points: int
    histogram: ErrorHistogram


@dataclass(frozen=True)
class ParityView:
    """Everything the page shows of a parity check; the worst comes first, but in the grid."""

    point_names: tuple[str, ...]
    grid: Listing[GridRow]
    concerns: Listing[Concern]
    panels: Listing[OutputPanel]
    figures: FigureTable
    hidden_figures: int


def build_parity_view(parity: ParityReport) -> ParityView:
    """Return what the page shows of a parity check."""
    comparisons = list_comparisons(parity)
    ranked = sorted(comparisons, key=lambda entry: -entry.severity)
    by_name: dict[str, list[Comparison]] = {}
    for comparison in comparisons:
        by_name.setdefault(comparison.output.name, []).append(comparison)
    outputs = sorted(
        by_name.values(), key=lambda entries: -max(entry.severity for entry in entries)
    )
    chosen = limit_entries(outputs, MOST_PANELS)
    scale = fit_error_scale(entry.output for entries in chosen.shown for entry in entries)
    panels = tuple(_build_panel(entries, scale) for entries in chosen.shown)
    return ParityView(
        point_names=tuple(parity.name_point(point) for point in parity.points),
        grid=limit_entries(_build_grid(parity, by_name), MOST_GRID_ROWS),
        concerns=limit_entries(list(_list_concerns(parity, ranked)), MOST_CONCERNS),
        panels=Listing(panels, chosen.hidden),
        figures=build_figure_table(ranked[:MOST_FIGURES]),
        hidden_figures=max(0, len(ranked) - MOST_FIGURES),
    )


def _list_concerns(parity: ParityReport, ranked: list[Comparison]) -> Iterator[Concern]:
    for point in parity.points:
        if point.problem:
            yield Concern(Verdict.FAIL, "", parity.name_point(point), (point.problem,), "")
    for entry in ranked:
        output = entry.output
        if entry.severity:
            figures = describe_error(output)
            yield Concern(output.verdict, output.name, entry.point_name, output.reasons, figures)


def _build_grid(parity: ParityReport, by_name: dict[str, list[Comparison]]) -> list[GridRow]:
    rows = []
    for name, entries in by_name.items():
        at_point = {id(entry.point): entry for entry in entries}
        rows.append(GridRow(name, tuple(at_point.get(id(point)) for point in parity.points)))
    return rows


def _build_panel(entries: list[Comparison], scale: LogScale) -> OutputPanel:
    last = entries[-1].output
    metrics = last.metrics
    types = metrics.reference_dtype
    if metrics.candidate_dtype != metrics.reference_dtype:
        types += f", candidate {metrics.candidate_dtype}"
    worst_first = sorted(entries, key=lambda entry: -entry.severity)
    kept = {id(entry) for entry in worst_first[:MOST_BARS]}
    drawn = [entry for entry in entries if id(entry) in kept]
    return OutputPanel(
        name=last.name,
        verdict=worst_verdict([entry.output.verdict for entry in entries]),
        type_text=f"{types} {format_sizes(metrics.shape, TIMES)}",
        origin=last.tolerance.origin,
        noise_sources=tuple(
            dict.fromkeys(c.output.noise.source for c in entries if c.output.noise)
        ),
        notes=tuple(_list_notes(entries)),
        bars=draw_error_bars([(entry.point_name, entry.output) for entry in drawn], scale),
        hidden_points=len(entries) - len(drawn),
        histogram=draw_histogram(entry.output.metrics for entry in entries),
    )


def _list_notes(entries: list[Comparison]) -> Iterator[str]:
    """Yield each remark once, with the points where it was made."""
    points: dict[str, list[str]] = {}
    for entry in entries:
        for reason in () if entry.severity else entry.output.reasons:
            points.setdefault(reason, []).append(entry.point_name)
    for reason, names in points.items():
        yield reason if len(names) == len(entries) else f"{', '.join(names[:6])}: {reason}"
