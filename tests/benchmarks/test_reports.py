from __future__ import annotations

import pytest

from benchmarks.build_report import BuildComparison, Step
from benchmarks.build_report import make_rows as make_build_rows
from benchmarks.build_report import render_report as render_build_report
from benchmarks.conversion_report import (
    ModelResult,
    ToolResult,
    Verdict,
    make_rows,
    name_verdict,
    render_report,
)
from benchmarks.processes import Measurement

FAILED = Measurement(1, 0.1, 0.1, 10_000_000, "Traceback\nValueError: cannot reshape")
RIGHT = Verdict(loads=True, error=0.0004, right=True)


def measured(wall_s: float, peak_mb: int) -> Measurement:
    return Measurement(0, wall_s, wall_s, peak_mb * 1_000_000, "")


def test_ratios_are_ours_by_theirs() -> None:
    result = ModelResult(
        "resnet50",
        (
            ToolResult("trtdeploy", (measured(0.5, 90),), RIGHT),
            ToolResult("ort", (measured(2.0, 600),), RIGHT),
        ),
    )
    assert make_rows(result) == [
        ("resnet50", "trtdeploy", "0.500", "90", "-", "-", "yes", "4.0e-04", "yes"),
        ("", "ort", "2.000", "600", "0.25x", "0.15x", "yes", "4.0e-04", "yes"),
    ]


def test_wrong_and_failing_tools_stay_in_the_table() -> None:
    fast = ToolResult("fast", (measured(0.1, 50),), Verdict(loads=True, error=0.5))
    broken = ToolResult("broken", (), Verdict(reason="exit status 1: ValueError: cannot reshape"))
    ours = ToolResult("trtdeploy", (measured(0.5, 90),), RIGHT)
    result = ModelResult("m", (ours, fast, broken))
    rows = make_rows(result)
    assert rows[1][-3:] == ("yes", "5.0e-01", "no")
    assert rows[2][2:] == ("failed", "-", "-", "-", "no", "-", "no")
    report = {"command": "c", "machine": {"cores": "2"}, "runs": 1, "versions": {"ort": {"a": "1"}}}
    text = render_report(report, [result], None)
    assert "* m, broken: exit status 1: ValueError: cannot reshape" in text
    assert "* ort: a 1" in text


@pytest.mark.parametrize(
    ("error", "others", "expected"),
    [
        (0.009, (0.001,), "yes"),
        (0.012, (0.012, 0.5), "as others"),
        (0.012, (0.011, None), "as others"),
        (0.05, (0.012, 0.05), "no"),
        (0.05, (0.002,), "no"),
        (0.012, (), "no"),
        (0.012, (None,), "no"),
        (None, (0.012,), "no"),
    ],
)
def test_a_wrong_output_is_told_from_the_noise_of_fp16(
    error: float | None, others: tuple[float | None, ...], expected: str
) -> None:
    def judged(error: float | None) -> Verdict:
        return Verdict(error is not None, error, error is not None and error <= 0.01)

    assert name_verdict(judged(error), [judged(other) for other in others]) == expected


def test_big_model_shows_time_memory_and_what_was_checked() -> None:
    report = {"command": "c", "machine": {}, "runs": 1, "versions": {}}
    checked = Verdict(loads=True, right=True, reason="2147.5 MB, full ONNX check")
    tool = ToolResult("trtdeploy", (measured(30.0, 99),), checked)
    text = render_report(report, [], ModelResult("big", (tool,)))
    assert (
        text.splitlines()[-1] == "| big           | 30.0   | 99      | 2147.5 MB, full ONNX check |"
    )
    failed = ToolResult("trtdeploy", (FAILED,), Verdict())
    assert "cannot reshape" in render_report(report, [], ModelResult("big", (failed,)))


def test_build_shows_where_the_time_goes() -> None:
    comparison = BuildComparison(
        "yolo",
        {"trtdeploy build": (measured(2.0, 300),), "bare script": (measured(1.0, 290),)},
        ((Step("type", 0.25), Step("TensorRT-RTX", 0.75)),),
        {"trtdeploy build": 10_300_000, "bare script": 10_300_000},
    )
    assert comparison.step_medians == {"type": 0.25, "TensorRT-RTX": 0.75, "rest": 1.0}
    assert make_build_rows(comparison)[1] == ("", "bare script", "1.000", "290", "2.00x", "10.3")


def test_failed_build_says_why() -> None:
    start = BuildComparison("start-up", {"help": (measured(0.1, 18),)})
    failed = BuildComparison("yolo", {"trtdeploy build": (FAILED,)})
    report = {"command": "c", "machine": {}, "runs": 1, "profile": "p", "versions": {}}
    text = render_build_report(report, start, [failed])
    assert "* yolo, trtdeploy build: exit status 1: ValueError: cannot reshape" in text
    assert failed.to_dict()["programs"]["trtdeploy build"]["summary"] is None
