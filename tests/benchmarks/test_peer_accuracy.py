"""The comparison with the peers: equal inputs for all, and an honest verdict."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import peer_accuracy_benchmark
from benchmarks.accuracy_models import AccuracyModel, compare_top1
from benchmarks.environments import ROOT
from benchmarks.peer_accuracy_benchmark import measure_model, modernize
from benchmarks.peer_accuracy_report import Row, is_ahead, list_comparisons, render_report
from tests.builders import model, op, value
from tests.pinning.test_finding import outlier_network, save

OURS = Row("net", "minmax", "trtdeploy", 20.0, {"top-1 agreement": 0.5}, 3, 4, 0.5, "accepted")
PEER = Row("net", "minmax", "ort", 21.5, {}, 4, 4, 1.0, "accepted")
FAILED = Row("net", "minmax", "modelopt").fail("exit status 1")


def test_the_best_peer_counts() -> None:
    weaker = Row("net", "minmax", "modelopt", 3.0)
    (found,) = list_comparisons([OURS, weaker, PEER])
    assert (found.best, found.lead_db) == (PEER, -1.5)
    assert not is_ahead([OURS, weaker, PEER])
    assert is_ahead([OURS, weaker])


def test_a_failure_of_ours_is_behind_and_one_of_a_peer_is_no_comparison() -> None:
    assert not is_ahead([Row("net", "minmax", "trtdeploy").fail("no"), PEER])
    assert not list(list_comparisons([OURS, FAILED]))
    assert not is_ahead([OURS, FAILED])
    other = Row("net", "entropy", "ort", 99.0)
    assert not list(list_comparisons([OURS, other]))


def test_the_report_names_where_trtdeploy_is_behind() -> None:
    report = {"command": "python x", "machine": {"cores": "2"}, "versions": {"ort": {"onnx": "1"}}}
    subject = AccuracyModel("net", Path("net.onnx"), lambda *_: {}, compare_top1, 8, 16)
    text = render_report(report, [OURS, PEER, FAILED], [subject])
    assert "* net, minmax: trtdeploy is 1.5 dB behind ort" in text
    assert "best SQNR in 0 of 1 cases" in text
    assert "* net, minmax, modelopt: exit status 1" in text
    assert "| **21.5** |" in text
    assert "| 3 of 4      | 50%" in text
    assert "net 8 and 16" in text


def test_every_free_size_gets_a_name_of_its_own() -> None:
    shape = ("N", 3, "?", "?")
    proto = model([op("Relu", "x", "y", "r")], [value("x", shape)], [value("y", shape)], opset=11)
    raised = modernize(proto)
    assert raised.opset_import[0].version == 17
    dims = raised.graph.input[0].type.tensor_type.shape.dim
    assert [d.dim_param or d.dim_value for d in dims] == ["N", 3, "x_2", "x_3"]


def test_our_file_is_built_and_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(outlier_network(), tmp_path / "outlier.onnx")

    def make(count: int, split: str) -> dict[str, np.ndarray]:
        seed = int(split == "evaluate")
        return {"x": np.random.default_rng(seed).normal(0, 1, (count, 32)).astype(np.float32)}

    monkeypatch.setattr(peer_accuracy_benchmark, "_OUR_METHODS", ("minmax",))
    subject = AccuracyModel("outlier", path, make, compare_top1, 16, 12)
    (row,) = measure_model(subject, {}, tmp_path / "kept")
    assert row.failure == ""
    assert row.sqnr_db is not None
    assert 2 < row.sqnr_db < 60
    assert row.quantized_layers == row.layers > 0
    assert row.flops_share == pytest.approx(1.0)
    assert row.engine in ("accepted", "")
    assert (tmp_path / "kept/outlier/minmax/trtdeploy/model.onnx").is_file()


def test_the_script_runs_by_path_and_refuses_other_peers(tmp_path: Path) -> None:
    script = ROOT / "benchmarks" / "quantization_accuracy.py"
    command = [sys.executable, str(script), "--peers", "brevitas"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 2
    assert b"modelopt" in done.stderr
