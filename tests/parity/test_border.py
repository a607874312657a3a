"""Models whose inputs and outputs are narrow (``precision.io: recipe``) pass their own gate."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import trtdeploy
from tests.builders import constant, model, op, random_array, save, value
from trtdeploy.building.request import BuildRequest
from trtdeploy.cli.main import run
from trtdeploy.core.dtypes import DType
from trtdeploy.core.errors import InputError
from trtdeploy.parity.border import Border
from trtdeploy.parity.result import Verdict

WIDTH = 32
IO = ("precision.io=recipe",)


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write x [N, 32], rows (int64) [N], keep (bool) [N, 32] -> y [N, 8]."""
    monkeypatch.chdir(tmp_path)
    nodes = [
        op("Gather", "table rows", "g"),
        op("Add", "x g", "a"),
        op("Where", "keep a zero", "w"),
        op("MatMul", "w w0", "m"),
        op("Relu", "m", "r"),
        op("MatMul", "r w1", "y"),
    ]
    constants = [
        constant("table", random_array(7, WIDTH, seed=1)),
        constant("zero", np.zeros(())),
        constant("w0", random_array(WIDTH, WIDTH, seed=2, scale=0.2)),
        constant("w1", random_array(WIDTH, 8, seed=3, scale=0.2)),
    ]
    inputs = [
        value("x", ("N", WIDTH)),
        value("rows", ("N",), TensorProto.INT64),
        value("keep", ("N", WIDTH), TensorProto.BOOL),
    ]
    return save(model(nodes, inputs, [value("y", ("N", 8))], constants), tmp_path / "net.onnx")


def save_samples(scale: float = 1.0) -> Path:
    rng = np.random.default_rng(6)
    x = (scale * rng.normal(0, 1, (8, WIDTH))).astype(np.float32)
    rows, keep = rng.integers(0, 7, 8), rng.random((8, WIDTH)) < 0.8
    np.savez("data.npz", x=x, rows=rows, keep=keep)
    return Path("data.npz")


def build(net: Path, profile: str, data: Path | None = None) -> trtdeploy.BuildResult:
    return trtdeploy.build(BuildRequest(net, profile, overrides=IO, data=data, prepare_only=True))


@pytest.mark.parametrize(
    ("profile", "narrow"),
    [("rtx4090-fp16", TensorProto.FLOAT16), ("rtx4090-bf16", TensorProto.BFLOAT16)],
)
@pytest.mark.parametrize("has_data", [False, True])
def test_a_build_passes_its_own_gate(net: Path, profile: str, narrow: int, has_data: bool) -> None:
    result = build(net, profile, save_samples() if has_data else None)
    graph = onnx.load(result.model_path).graph
    types = {v.name: v.type.tensor_type.elem_type for v in (*graph.input, *graph.output)}
    assert types == {"x": narrow, "rows": TensorProto.INT64, "keep": TensorProto.BOOL, "y": narrow}
    assert result.parity_verdict == "pass"
    notes = json.loads(result.report_path.read_text())["parity"]["notes"]
    assert any("precision.io" in note for note in notes)
    assert run(["parity", str(result.folder), "--reference", "net.onnx", "--strict"]) == 0


def test_a_quantized_build_passes_too(net: Path) -> None:
    request = BuildRequest(
        net, "rtx4090-int8", overrides=IO, calibration_data=(save_samples(),), prepare_only=True
    )
    folder = trtdeploy.build(request).folder
    report = trtdeploy.check_parity(folder, net, data="data.npz")
    assert report.is_accepted()


def test_a_prepared_folder_passes(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = build(net, "rpi5-fp16")
    assert run(["build", str(result.folder)]) == 0
    assert "  parity " in capsys.readouterr().err


def test_a_session_is_fed_narrow_values(net: Path) -> None:
    """The typed model in ONNX Runtime stands for an engine: it casts nothing either."""
    result = build(net, "rtx4090-fp16")
    request = trtdeploy.request_parity(result.folder, net)
    request = replace(request, open_engine=lambda: trtdeploy.load(result.model_path))
    report = trtdeploy.check_parity(request)
    assert report.label.startswith("measured on CPU")
    assert not any(point.problem for point in report.points)
    assert report.verdict is not Verdict.FAIL


@pytest.mark.parametrize("profile", ["rtx4090-fp16", "rtx4090-bf16"])
def test_a_planted_bug_fails(net: Path, profile: str) -> None:
    result = build(net, profile)
    proto = onnx.load(result.model_path)
    next(n for n in proto.graph.node if n.op_type == "Relu").op_type = "Identity"
    onnx.save(proto, "bad.onnx")
    rest = ["--reference", "net.onnx", "-p", profile, "--set", *IO]
    assert run(["parity", "bad.onnx", *rest]) == 1
    assert run(["parity", str(result.model_path), *rest]) == 0


def test_a_model_that_should_keep_its_types_is_fed_fp32(net: Path) -> None:
    """Narrow inputs that nobody asked for would break every caller."""
    path = build(net, "rtx4090-fp16").model_path
    report = trtdeploy.check_parity(path, net, profile="rtx4090-fp16")
    assert report.verdict is Verdict.FAIL
    assert any("must be float16" in point.problem for point in report.points)


def test_inputs_that_overflow_are_refused(net: Path) -> None:
    folder = build(net, "rtx4090-fp16").folder
    with pytest.raises(InputError, match=r"'x' holds .* which float16 cannot hold"):
        trtdeploy.check_parity(folder, net, data=save_samples(scale=1e6))


@pytest.mark.parametrize("dtype", [DType.FLOAT16, DType.BFLOAT16])
def test_feeds_are_rounded_and_stay_fp32(dtype: DType) -> None:
    feeds = {"x": np.float32([1.0, 1.0 + 2.0**-12, np.inf]), "rows": np.int64([2**40 + 1])}
    rounded = Border(dtype).round_feeds(feeds)
    assert rounded["x"].dtype == np.float32
    assert rounded["x"].tolist() == [1.0, 1.0, np.inf]
    assert rounded["rows"] is feeds["rows"]
    assert Border(None).round_feeds(feeds) is feeds
