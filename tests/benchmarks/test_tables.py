from __future__ import annotations

import pytest

from benchmarks.processes import Measurement
from benchmarks.tables import (
    divide,
    format_peak,
    format_ratio,
    format_wall,
    render_table,
    summarize,
)


def measured(wall_s: float, peak_bytes: int = 100, exit_status: int = 0) -> Measurement:
    return Measurement(exit_status, wall_s, wall_s, peak_bytes, "")


def test_medians_ignore_one_slow_run() -> None:
    summary = summarize([measured(1.0, 10), measured(9.0, 30), measured(2.0, 20)])
    assert (summary.runs, summary.wall_s, summary.peak_bytes) == (3, 2.0, 20)
    assert (summary.fastest_s, summary.slowest_s) == (1.0, 9.0)


def test_median_of_an_even_number_is_between_the_middle_two() -> None:
    assert summarize([measured(1.0), measured(2.0), measured(4.0), measured(100.0)]).wall_s == 3.0


@pytest.mark.parametrize("runs", [[], [measured(1.0), measured(1.0, exit_status=1)]])
def test_no_figure_without_successful_runs(runs: list[Measurement]) -> None:
    with pytest.raises(ValueError, match=r"nothing to summarize|failed run"):
        summarize(runs)


def test_ratio_below_one_means_that_ours_takes_less() -> None:
    ratio = divide(summarize([measured(1.0, 30)]), summarize([measured(4.0, 60)]))
    assert (ratio.wall, ratio.peak) == (0.25, 0.5)


def test_figures_are_written_with_their_spread() -> None:
    summary = summarize([measured(0.4, 98_400_000), measured(0.5, 98_400_000), measured(1.25)])
    assert format_wall(summary) == "0.500 (0.400-1.250)"
    assert format_wall(summarize([measured(0.4)])) == "0.400"
    assert format_peak(summary) == "98"
    assert format_ratio(0.254) == "0.25x"


def test_table_is_aligned_markdown() -> None:
    assert render_table(("a", "long"), [("x|y", "1"), ("z", "2")]).splitlines() == [
        "| a    | long |",
        "|------|------|",
        "| x\\|y | 1    |",
        "| z    | 2    |",
    ]


def test_table_refuses_a_short_row() -> None:
    with pytest.raises(ValueError, match="2 cells"):
        render_table(("a", "b"), [("x",)])
