"""The benchmark of the parity check: what it runs, its ratios, and its verdict."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from benchmarks.emulation_speed import SessionProcess, WorkerError, emulate_fp16, fill_shape
from benchmarks.environments import ROOT
from benchmarks.graph_builder import Feature, GraphBuilder
from benchmarks.parity_memory import LARGEST_BATCH, PIXELS, SAMPLES, build_conv_model, make_ranges
from benchmarks.parity_report import (
    BASELINE,
    EMULATED,
    OPTIMIZED,
    MemoryResult,
    SpeedResult,
    is_within_limits,
    make_memory_rows,
    make_speed_rows,
    render_report,
)
from benchmarks.processes import Measurement
from trtdeploy.graph.loading import load_model


def make_speed(emulated: float) -> SpeedResult:
    runs = {EMULATED: (9.0, emulated, 0.1), BASELINE: (0.1,), OPTIMIZED: (0.05,)}
    return SpeedResult("net", runs)


def make_memory(*peaks_mb: int) -> MemoryResult:
    counts = zip(SAMPLES, peaks_mb, strict=True)
    return MemoryResult(
        1_000_000, {n: (Measurement(0, 1.0, 1.0, mb * 10**6, ""),) for n, mb in counts}
    )


def test_free_sizes_become_one_image_of_640() -> None:
    assert fill_shape(("batch", 3, "height", "width")) == (1, 3, 640, 640)
    assert fill_shape((2, 3, 320, 320)) == (2, 3, 320, 320)


def test_ratios_are_of_medians() -> None:
    rows = make_speed_rows(make_speed(0.3))
    assert rows[0] == ("net", EMULATED, "300.0 (100.0-9000.0)", "-", "-")
    assert rows[1] == ("", BASELINE, "100.0", "3.00x", "at most 4x")
    assert rows[2] == ("", OPTIMIZED, "50.0", "6.00x", "-")


def test_peaks_are_compared_with_the_fewest_samples() -> None:
    rows = make_memory_rows(make_memory(100, 101, 120))
    assert rows[0] == ("8", "8.0", "1.000", "100", "-", "-")
    assert [row[4] for row in rows] == ["-", "1.01x", "1.20x"]


@pytest.mark.parametrize(
    ("emulated", "last", "kept"), [(0.4, 104, True), (0.5, 104, False), (0.4, 106, False)]
)
def test_the_report_says_whether_both_limits_are_kept(
    emulated: float, last: int, kept: bool
) -> None:
    speed, memory = make_speed(emulated), make_memory(100, 100, last)
    assert is_within_limits(speed, memory) == kept
    report = {"machine": {}, "command": "c", "runs": 3, "checks": 1, "versions": {"onnx": "1"}}
    text = render_report(report, speed, memory)
    assert text.endswith("are kept." if kept else "are NOT kept.")


def test_a_failed_check_is_no_success() -> None:
    done = dict(make_memory(100, 100, 100).runs)
    done[64] = (Measurement(1, 1.0, 1.0, 10, "error: fail, emulated on CPU"),)
    memory = MemoryResult(1, done)
    assert memory.failures == {64: "exit status 1: error: fail, emulated on CPU"}
    assert [row[2:5] for row in make_memory_rows(memory)][1] == ("failed", "-", "-")
    assert not is_within_limits(make_speed(0.1), memory)
    assert memory.to_dict()["checks"][1]["peak_ratio"] is None


def test_even_the_fewest_samples_run_every_shape_twice() -> None:
    assert make_ranges().shapes["images"].max == (LARGEST_BATCH, 3, PIXELS, PIXELS)
    assert min(SAMPLES) >= 2 * LARGEST_BATCH
    onnx.checker.check_model(build_conv_model(), full_check=True)


def test_a_session_runs_in_a_process_of_its_own(tmp_path: Path) -> None:
    graph = GraphBuilder(seed=0)
    graph.convolution(Feature("x", 3), 4, kernel=1)
    model = graph.build("tiny", ("x", ["batch", 3, 8, 8]), ("y", ["batch", 4, 8, 8]))
    path, feeds = tmp_path / "tiny.onnx", tmp_path / "feeds.npz"
    onnx.save_model(model, path)
    np.savez(feeds, x=np.zeros((1, 3, 8, 8), np.float32))
    operators = [node.op_type for node in emulate_fp16(load_model(path)).graph.node]
    assert operators.count("Cast") >= 2
    with SessionProcess(path, feeds, optimize=False) as session:
        assert 0 < session.measure_run() < 10
    with pytest.raises(WorkerError, match=r"missing\.onnx ended early"):
        SessionProcess(tmp_path / "missing.onnx", feeds, optimize=True)


def test_the_script_runs_by_path() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "parity.py"), "--runs", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "at least 1" in done.stderr
