"""The table of all figures; a column that says nothing about any output is left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from trtdeploy.report.comparison import Comparison
from trtdeploy.report.number_text import (
    NOT_THERE,
    format_cosine,
    format_count,
    format_figure,
    format_share,
)

_COLUMNS: Final[tuple[tuple[str, Callable[[Comparison], str]], ...]] = (
    ("Verdict", lambda c: c.output.verdict.value),
    ("Relative L2", lambda c: format_figure(c.output.metrics.relative_l2)),
    ("Allowed", lambda c: format_figure(c.output.tolerance.relative_l2)),
    ("Noise floor", lambda c: format_figure(c.output.noise_floor)),
    ("Balanced L2", lambda c: format_figure(c.output.metrics.balanced_relative_l2)),
    ("Max abs", lambda c: format_figure(c.output.metrics.max_abs_error)),
    ("Mean abs", lambda c: format_figure(c.output.metrics.mean_abs_error)),
    ("Largest value", lambda c: format_figure(c.output.metrics.reference_amax)),
    ("Cosine", lambda c: format_cosine(c.output.metrics.cosine)),
    ("SQNR dB", lambda c: format_figure(c.output.metrics.sqnr_db)),
    ("Close", lambda c: format_share(c.output.metrics.allclose_fraction)),
    ("Equal", lambda c: format_share(c.output.metrics.equal_fraction)),
    ("Top-1", lambda c: format_share(c.output.metrics.top1_agreement)),
    ("Top-5", lambda c: format_share(c.output.metrics.top5_agreement)),
    ("Flips", lambda c: _format_some(c.output.metrics.argmax_flips)),
    ("Largest gap", lambda c: format_figure(c.output.metrics.largest_flip_gap)),
    ("Ties", lambda c: _format_some(c.output.metrics.tied_rows)),
    ("Not finite in FP32", lambda c: _format_some(c.output.metrics.nonfinite_reference)),
    ("Not finite", lambda c: _format_some(c.output.metrics.nonfinite_candidate)),
)


@dataclass(frozen=True)
class FigureRow:
    """One output at one point; a text per heading."""

    name: str
    point_name: str
    texts: tuple[str, ...]


@dataclass(frozen=True)
class FigureTable:
    """Headings and rows."""

    heads: tuple[str, ...]
    rows: tuple[FigureRow, ...]


def build_figure_table(comparisons: Sequence[Comparison]) -> FigureTable:
    """Return every figure of some comparisons as text."""
    columns = [(head, [format_one(c) for c in comparisons]) for head, format_one in _COLUMNS]
    kept = [(head, texts) for head, texts in columns if set(texts) - {NOT_THERE}]
    rows = (
        FigureRow(c.output.name, c.point_name, tuple(texts[index] for _, texts in kept))
        for index, c in enumerate(comparisons)
    )
    return FigureTable(tuple(head for head, _ in kept), tuple(rows))


def _format_some(count: int) -> str:
    return format_count(count) if count else NOT_THERE
