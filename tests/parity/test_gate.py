"""The gate as a whole: honest models pass, planted bugs fail, nothing passes unseen."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, numpy_helper

import trtdeploy
from tests.building.models import save_convnet
from trtdeploy.building.request import BuildRequest
from trtdeploy.cli.main import run
from trtdeploy.core.errors import UsageError
from trtdeploy.parity import comparison, judgement
from trtdeploy.parity.result import SkippedParity, Verdict


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return trtdeploy.build(save_convnet(tmp_path / "net.onnx"), "rpi5-fp16").folder


def scale_a_weight(model: ModelProto) -> None:
    tensor = next(t for t in model.graph.initializer if len(t.dims) == 4)
    values = (numpy_helper.to_array(tensor) * np.float16(1.01)).astype(np.float16)
    tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))


def drop_the_relu(model: ModelProto) -> None:
    next(n for n in model.graph.node if n.op_type == "Relu").op_type = "Identity"


def negate_the_output(model: ModelProto) -> None:
    node = next(n for n in model.graph.node if n.op_type == "Gemm")
    node.attribute.append(onnx.helper.make_attribute("alpha", -1.0))


@pytest.mark.parametrize("plant", [scale_a_weight, drop_the_relu, negate_the_output])
def test_planted_bugs_fail(folder: Path, plant: Callable[[ModelProto], None]) -> None:
    model = onnx.load(folder / "model.onnx")
    plant(model)
    onnx.save(model, "bad.onnx")
    assert run(["parity", "bad.onnx", "--reference", "net.onnx", "-p", "rpi5-fp16"]) == 1
    assert run(f"parity {folder}/model.onnx --reference net.onnx -p rpi5-fp16".split()) == 0


def test_a_build_is_compared_at_every_point_and_says_emulated(folder: Path) -> None:
    parity = json.loads((folder / "report.json").read_text())["parity"]
    assert parity["label"] == "emulated on CPU"
    assert parity["is_synthetic"]
    assert parity["verdict"] == "pass"
    points = [point["point"] for point in parity["points"]]
    assert any("min" in point for point in points)
    assert any("max" in point for point in points)
    assert any("batch independence" in point for point in points)
    assert "emulated on CPU" in (folder / "report.html").read_text()


def test_no_parity_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    request = BuildRequest(save_convnet(tmp_path / "net.onnx"), "rpi5-fp16", check_parity=False)
    result = trtdeploy.build(request)
    assert result.manifest.parity == SkippedParity("--no-parity was given")
    assert not result.parity_failed
    assert not trtdeploy.build(tmp_path / "net.onnx", "rpi5-fp16").reused  # it owes the check


def test_a_failed_gate_keeps_the_folder_and_exits_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    save_convnet(tmp_path / "net.onnx")
    command = ["build", "net.onnx", "-p", "rpi5-fp16", "--set", "parity.atol=1e-9"]
    assert run(command) == 1
    assert "do not ship it" in capsys.readouterr().err
    assert run(command) == 1  # also when the result is only found again
    assert run(["report", "net.rpi5-fp16"]) == 1


def test_bf16_is_compared_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ONNX Runtime has no BF16 kernels on a CPU; the emulation needs none."""
    monkeypatch.chdir(tmp_path)
    request = BuildRequest(save_convnet(tmp_path / "net.onnx"), "h100-bf16", prepare_only=True)
    assert trtdeploy.build(request).parity_verdict == "pass"


def test_task_metric_needs_and_uses_labels(folder: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    images = rng.normal(0, 1, (6, 3, 64, 64)).astype(np.float32)
    with trtdeploy.load(tmp_path / "net.onnx") as session:
        labels = session.run({"images": images})["scores"].argmax(axis=1)
    np.savez(tmp_path / "val.npz", images=images, labels=labels)
    request = trtdeploy.request_parity(folder, tmp_path / "net.onnx")
    request = replace(request, metric="top1", max_drop=0.2)
    report = trtdeploy.check_parity(replace(request, data=tmp_path / "val.npz"))
    assert report.task_metric is not None
    assert report.task_metric.reference == 1.0
    assert not report.is_synthetic
    assert report.verdict is Verdict.PASS
    with pytest.raises(UsageError, match="labels"):
        trtdeploy.check_parity(request)


def test_a_bare_model_needs_a_profile_and_a_folder_refuses_one(folder: Path) -> None:
    with pytest.raises(UsageError, match="which recipe"):
        trtdeploy.check_parity(folder / "model.onnx", "net.onnx")
    with pytest.raises(UsageError, match="has its profile"):
        trtdeploy.check_parity(folder, "net.onnx", profile="rpi5-fp16")


def test_numbers_with_an_exponent_are_numbers(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """YAML 1.1 takes 1e-3 for text; people do not."""
    capsys.readouterr()
    assert run(["profiles", "rpi5-fp16", "--set", "parity.rtol=1e-3", "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["profile"]["parity"]["rtol"] == 0.001


def test_a_suspicion_is_treated_alike_by_api_and_commands(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Accepted with a warning in words; refused with strict."""
    honest = judgement.judge_output

    def suspect(*args: Any, **options: Any) -> list[judgement.Finding]:
        return [*honest(*args, **options), (Verdict.SUSPECT, "a bit off")]

    monkeypatch.setattr(comparison, "judge_output", suspect)
    result = trtdeploy.build(BuildRequest(Path("net.onnx"), "rpi5-fp16", rebuild=True))
    report = trtdeploy.check_parity(folder, "net.onnx")
    commands = (
        ["parity", str(folder), "--reference", "net.onnx"],
        ["report", str(folder)],
        ["build", "net.onnx", "-p", "rpi5-fp16"],
    )
    for accept in (report.is_accepted, result.is_accepted):
        assert not accept(strict=True)
        assert not caplog.records
        assert accept()
        assert "worse than rounding explains" in caplog.text
        caplog.clear()
    for command in commands:
        assert run([*command, "--strict"]) == 1
        assert not caplog.records
        assert run(command) == 0
        assert "worse than rounding explains" in caplog.text
        caplog.clear()
