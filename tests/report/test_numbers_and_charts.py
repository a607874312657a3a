"""Figures as text, and the geometry of the drawings."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.report import fabricated
from tests.report.fabricated import check_report
from trtdeploy.parity.result import OutputMetrics
from trtdeploy.precision.plan import PrecisionRecord
from trtdeploy.report import number_text
from trtdeploy.report.json_document import read_value
from trtdeploy.report.page.error_bars import fit_log_scale
from trtdeploy.report.page.error_histogram import HEIGHT, WIDTH, draw_histogram
from trtdeploy.report.page.parity_view import build_parity_view
from trtdeploy.report.page.precision_map import build_precision_map


@pytest.mark.parametrize(
    ("render", "value", "text"),
    [
        (number_text.format_figure, None, "\N{EN DASH}"),
        (number_text.format_figure, 0.0, "0"),
        (number_text.format_figure, 0.0123456, "0.0123"),
        (number_text.format_figure, 1.234e-5, "1.2e-5"),
        (number_text.format_figure, 123456.0, "1.2e5"),
        (number_text.format_figure, math.inf, "inf"),
        (number_text.format_figure, math.nan, "nan"),
        (number_text.format_share, 1.0, "100 %"),
        (number_text.format_share, 0.9999999, "99.999 %"),
        (number_text.format_share, 0.348, "34.8 %"),
        (number_text.format_cosine, 0.9999, "1 \N{MINUS SIGN} 1.0e-4"),
        (number_text.format_cosine, 1.0, "1"),
        (number_text.format_cosine, 0.5, "0.5"),
        (number_text.format_seconds, 0.087, "0.087 s"),
        (number_text.format_seconds, 250.0, "4 min 10 s"),
        (number_text.format_seconds, 119.9, "2 min 0 s"),
        (number_text.format_compact, 999, "999"),
        (number_text.format_compact, 1049, "1.0k"),
        (number_text.format_compact, 999_999, "1.0M"),
        (number_text.format_compact, 2**63 - 1, "9E"),
        (number_text.format_sizes, (1, 3, "height"), "1x3xheight"),
        (number_text.format_sizes, (), "scalar"),
        (number_text.format_sizes, None, "unknown rank"),
    ],
)
def test_figures_as_text(render: Any, value: Any, text: str) -> None:
    assert render(value) == text


def test_shorten_keeps_both_ends() -> None:
    assert number_text.shorten("a" * 50 + "/Conv", 12) == "aaaaaaaa…onv"
    assert number_text.shorten("two\n lines", 20) == "two lines"
    assert len(number_text.shorten("x" * 99, 1)) == 1


@pytest.mark.parametrize(
    "values", [[], [0.0], [None, 3e-4], [1e-30, 1e30], [math.inf, math.nan, -1.0], [1e308, 5e-324]]
)
def test_scale_holds_any_values(values: list[float | None]) -> None:
    scale = fit_log_scale(values, 10, 100)
    assert 3 <= scale.high - scale.low <= 12
    for value in [*values, 1e-300, 1e300]:
        assert 10 <= scale.place(value or 0.0) <= 110
    assert 2 <= len(scale.list_ticks()) <= 6


def make_metrics(counts: tuple[int, ...], first: int) -> OutputMetrics:
    edges = tuple(range(first, first + len(counts) + 1))
    return OutputMetrics(
        shape=(4,), reference_dtype="float32", candidate_dtype="float32", histogram=counts,
        histogram_edges=edges,
    )  # fmt: skip


def test_histogram_sums_points_and_shows_single_elements() -> None:
    chart = draw_histogram([make_metrics((5, 1000), -4), make_metrics((1,), -1)])
    assert chart.total == 1006
    assert [column.count_text for column in chart.columns] == ["5", "1.0k", "", "1"]
    assert [column.height > 0 for column in chart.columns] == [True, True, False, True]
    assert chart.columns[0].title == "|error| 1e-4 to 1e-3: 5 elements"
    assert [label for _, label in chart.edges] == ["1e-4", "1e-3", "1e-2", "1e-1", "1e0"]


def test_histogram_folds_what_lies_far_below() -> None:
    chart = draw_histogram([make_metrics((7,), -300), make_metrics((3,) * 20, -10)])
    assert len(chart.columns) == 12
    assert chart.columns[0].title.startswith("|error| below 1e")
    assert chart.total == 67
    for column in chart.columns:
        assert 0 <= column.x <= column.x + column.width <= WIDTH
        assert 0 <= column.y <= column.y + column.height <= HEIGHT


def test_no_errors_no_histogram() -> None:
    assert draw_histogram([make_metrics((), 0), make_metrics((0, 0), 3)]).columns == ()


def test_worst_output_comes_first_and_all_share_one_axis() -> None:
    report = check_report(fabricated.make_report(fabricated.make_mixed_parity()))
    view = build_parity_view(report.parity)  # type: ignore[arg-type]
    assert [panel.name for panel in view.panels.shown][:2] == ["embeddings/pooled", "proto_masks"]
    assert len({panel.bars.ticks for panel in view.panels.shown}) == 1
    assert [entry.name for entry in view.concerns.shown] == [
        "embeddings/pooled", "proto_masks",
    ]  # fmt: skip
    assert "Top-5" in view.figures.heads
    assert "Ties" not in view.figures.heads


def test_fp32_nodes_are_grouped_by_rule() -> None:
    table = fabricated.make_precision(16)
    names = list(table["nodes"])
    table["nodes"][names[0]] = {"dtype": "float32", "rule": "pinned", "reason": "--pin"}
    section = read_value(PrecisionRecord, table, "precision")
    kept = build_precision_map(section).kept
    assert [(group.rule, group.count) for group in kept] == [("KeepSoftmaxRule", 2), ("pinned", 1)]
    assert kept[0].reasons[0].nodes == (names[5], names[13])
