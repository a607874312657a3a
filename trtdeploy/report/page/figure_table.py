"""The table of all figures; a column that says nothing about any output is left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trtdeploy.report.comparison import Comparison
from trtdeploy.report.figures import FIGURES
from trtdeploy.report.number_text import NOT_THERE


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
    columns = [(f.heading, [f.render(c.output) for c in comparisons]) for f in FIGURES]
    kept = [(head, texts) for head, texts in columns if set(texts) - {NOT_THERE}]
    rows = (
        FigureRow(c.output.name, c.point_name, tuple(texts[index] for _, texts in kept))
        for index, c in enumerate(comparisons)
    )
    return FigureTable(tuple(head for head, _ in kept), tuple(rows))
