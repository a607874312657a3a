"""Geometry of the error histogram of one output, over all its points."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from trtdeploy.parity.result import OutputMetrics
from trtdeploy.report.number_text import count_noun, format_compact

WIDTH, HEIGHT = 300, 128
_TOP, _AXIS = 16, 20
_MOST_COLUMNS = 12
_MOST_LABELS = 7
_SMALLEST_BAR = 2.0
_GAP = 3.0
_MARGIN = 14.0


@dataclass(frozen=True)
class HistogramColumn:
    """The bar of one decade; no height and no text where it counts nothing."""

    x: float
    y: float
    width: float
    height: float
    count_text: str
    title: str


@dataclass(frozen=True)
class ErrorHistogram:
    """Columns of one chart, none when no errors were counted, and the edges between them."""

    columns: tuple[HistogramColumn, ...]
    edges: tuple[tuple[float, str], ...]
    total: int


def draw_histogram(metrics: Iterable[OutputMetrics]) -> ErrorHistogram:
    """Return the chart that sums up the histograms of one output at all its points.

    Heights are logarithmic: a single element that is far off must be seen beside a million
    that are not.
    """
    counts = _sum_decades(metrics)
    if not counts:
        return ErrorHistogram((), (), 0)
    high = max(counts)
    low = max(min(counts), high - _MOST_COLUMNS + 1)
    shown = [counts[decade] for decade in range(low, high + 1)]
    folded = sum(count for decade, count in counts.items() if decade < low)
    shown[0] += folded
    starts = [f"1e{decade} to" for decade in range(low, high + 1)]
    if folded:
        starts[0] = "below"
    pitch = (WIDTH - 2 * _MARGIN) / len(shown)
    columns = []
    for index, (count, start) in enumerate(zip(shown, starts, strict=True)):
        height = _measure_height(count, max(shown))
        columns.append(
            HistogramColumn(
                x=round(_MARGIN + index * pitch + _GAP / 2, 1),
                y=round(HEIGHT - _AXIS - height, 1),
                width=round(pitch - _GAP, 1),
                height=height,
                count_text=format_compact(count) if count else "",
                title=f"|error| {start} 1e{low + index + 1}: {count_noun(count, 'element')}",
            )
        )
    every = math.ceil((len(shown) + 1) / _MOST_LABELS)
    edges = [
        (round(_MARGIN + index * pitch, 1), f"1e{low + index}")
        for index in range(0, len(shown) + 1, every)
    ]
    return ErrorHistogram(tuple(columns), tuple(edges), sum(shown))


def _sum_decades(metrics: Iterable[OutputMetrics]) -> Counter[int]:
    counts: Counter[int] = Counter()
    for entry in metrics:
        for decade, count in zip(entry.histogram_edges, entry.histogram, strict=False):
            counts[decade] += count
    return +counts


def _measure_height(count: int, most: int) -> float:
    if not count:
        return 0.0
    room = HEIGHT - _AXIS - _TOP
    return round(max(_SMALLEST_BAR, room * math.log10(count + 1) / math.log10(most + 1)), 1)
