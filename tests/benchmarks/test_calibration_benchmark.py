from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from benchmarks.calibration_report import (
    CalibrationResult,
    FlatnessResult,
    is_within_limits,
    list_targets,
    make_flatness_rows,
    make_rows,
    render_report,
)
from benchmarks.environments import ROOT
from benchmarks.processes import Measurement
from benchmarks.tools import PROGRAMS
from benchmarks.yolo import build_yolov8n

FAILED = Measurement(1, 0.1, 0.1, 10_000_000, "ValueError: no")


def measured(wall_s: float, peak_mb: int) -> Measurement:
    return Measurement(0, wall_s, wall_s, peak_mb * 1_000_000, "")


def compare(ours: Measurement, theirs: Measurement | None) -> CalibrationResult:
    runs = {"trtdeploy": (ours,)}
    if theirs is not None:
        runs["modelopt"] = (theirs,)
    return CalibrationResult("yolo", 32, "entropy", runs, {"trtdeploy": 68}, {})


def flat(few: Measurement, many: Measurement) -> FlatnessResult:
    return FlatnessResult({32: (few,), 320: (many,)})


KEPT = flat(measured(5, 350), measured(50, 360))


@pytest.mark.parametrize(
    ("result", "flatness", "expected"),
    [
        (compare(measured(5, 350), measured(16, 1000)), KEPT, True),
        (compare(measured(5, 350), measured(14, 1000)), KEPT, False),
        (compare(measured(5, 650), measured(16, 1000)), KEPT, False),
        (compare(measured(5, 350), FAILED), KEPT, False),
        (compare(measured(5, 350), None), KEPT, True),
        (compare(FAILED, None), KEPT, False),
        (compare(measured(5, 350), None), flat(measured(5, 350), measured(50, 380)), False),
        (compare(measured(5, 350), None), flat(measured(5, 350), FAILED), False),
    ],
)
def test_targets_decide(
    result: CalibrationResult, flatness: FlatnessResult, expected: bool
) -> None:
    assert is_within_limits(result, flatness) is expected


def test_rows_show_ratios_and_failures() -> None:
    result = compare(measured(5, 350), measured(20, 1000))
    assert make_rows(result) == [
        ("yolo", "trtdeploy", "5.000", "350", "-", "-", "68"),
        ("", "modelopt", "20.000", "1000", "0.25x", "0.35x", "-"),
    ]
    failed = compare(measured(5, 350), FAILED)
    assert make_rows(failed)[1] == ("", "modelopt", "failed", "-", "-", "-", "-")
    assert list(list_targets(failed, KEPT).values()) == [None, True, True]
    assert make_flatness_rows(KEPT)[1] == ("320", "50.000", "360", "1.03x")
    report = {"command": "c", "machine": {"cores": "2"}, "runs": 1, "versions": {}}
    text = render_report(report, failed, KEPT)
    assert "* wall at most 1/3 of Model-Optimizer's: not measured" in text
    assert "* peak with 320 images at most 1.05x that with 32: kept" in text


def test_the_script_runs_by_path_with_a_bare_python(tmp_path: Path) -> None:
    command = [sys.executable, "-S", str(ROOT / "benchmarks" / "calibrate.py")]
    done = subprocess.run([*command, "--help"], cwd=tmp_path, capture_output=True, check=True)
    assert b"--more-images" in done.stdout
    for wrong in (["--images", "0"], ["--model", "a", "--model", "b"], ["--fetch"]):
        refused = subprocess.run([*command, *wrong], capture_output=True, check=False)
        assert (refused.returncode, refused.stdout) == (2, b"")


def test_our_program_writes_a_quantized_model_and_its_calibration(tmp_path: Path) -> None:
    model, data, target = tmp_path / "m.onnx", tmp_path / "d.npy", tmp_path / "q.onnx"
    onnx.save(build_yolov8n(base=8, image=32), model)
    subprocess.run([sys.executable, PROGRAMS / "write_images.py", data, "3", "32"], check=True)
    images = np.load(data)
    assert (images.shape, images.min() >= 0, images.max() <= 1) == ((3, 3, 32, 32), True, True)
    program = PROGRAMS / "quantize_trtdeploy.py"
    subprocess.run([sys.executable, program, model, target, data, "entropy"], check=True)
    nodes = onnx.load(target).graph.node
    assert sum(node.op_type == "QuantizeLinear" for node in nodes) > 20
    assert target.with_suffix(".json").stat().st_size > 10_000
