"""INT8 and FP8 builds as a user types them: samples, calibration files, what is written."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tests.building.models import save_convnet
from trtdeploy.backends.installed import is_installed
from trtdeploy.cli.main import run

needs_rtx = pytest.mark.skipif(
    not is_installed("tensorrt_rtx"), reason="TensorRT-RTX is not installed"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    save_convnet(tmp_path / "net.onnx")
    rng = np.random.default_rng(1)
    for name in ("a", "b"):
        np.savez(f"{name}.npz", images=rng.normal(0, 1, (6, 3, 64, 64)).astype(np.float32))
    return tmp_path


def read_manifest(path: str) -> Any:
    return json.loads((Path(path) / "manifest.json").read_text())


def build(*arguments: str) -> int:
    return run(["build", "net.onnx", *arguments])


@needs_rtx
def test_int8_with_samples_gives_an_engine_and_says_what_it_did(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert build("-p", "rtx4090-int8", "--calib", "a.npz", "-o", "out") == 0
    assert "% of FLOPs) runs in INT8" in capsys.readouterr().out
    manifest = read_manifest("out")
    assert (folder / "out" / "model.engine").is_file()
    assert manifest["compile"]["precision"]["layers"]["INT8"] > 0
    calibration = manifest["quantization"]["calibration"]
    assert (calibration["samples"], calibration["is_synthetic"]) == (6, False)
    assert manifest["parity"]["data"] == "a.npz (6 samples)"
    assert [entry["path"] for entry in manifest["data"]] == ["a.npz"]
    types = {t.data_type for t in onnx.load("out/model.onnx").graph.initializer}
    assert {onnx.TensorProto.INT8, onnx.TensorProto.FLOAT16} <= types


def test_int8_without_samples_is_refused_and_nothing_is_written(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert build("-p", "orin-int8") == 2
    assert "--calib" in capsys.readouterr().err
    assert not list(folder.glob("*int8*"))


@pytest.mark.parametrize(
    ("profile", "options"), [("orin-int8", ["--synthetic-calib"]), ("h100-fp8", [])]
)
def test_made_up_samples_are_flagged_everywhere(
    folder: Path, capsys: pytest.CaptureFixture[str], profile: str, options: list[str]
) -> None:
    assert build("-p", profile, *options, "--prepare-only", "-o", "out") == 0
    assert "do not ship" in capsys.readouterr().out
    assert read_manifest("out")["quantization"]["calibration"]["is_synthetic"]
    assert run(["report", "out"]) == 0
    assert "made-up inputs" in capsys.readouterr().out


def test_a_calibration_file_is_used_again_and_merged(folder: Path) -> None:
    options = ("-p", "orin-int8", "--prepare-only", "--no-parity")
    assert build(*options, "--calib", "a.npz", "-o", "a") == 0
    assert build(*options, "--calib", "b.npz", "-o", "b") == 0
    assert build(*options, "--calib", "a.npz", "--calib", "b.npz", "-o", "both") == 0
    shutil.copy("a/calibration.json", "a.json")
    assert build(*options, "--calib", "a.json", "--calib", "b/calibration.json", "-o", "sum") == 0
    tensors = [
        read_manifest(name)["quantization"]["calibration"]["tensors"] for name in ("both", "sum")
    ]
    assert tensors[0] == tensors[1]
    assert read_manifest("sum")["quantization"]["calibration"]["samples"] == 12


def test_methods_are_chosen_on_the_command_line_and_by_name(folder: Path) -> None:
    options = ["-p", "orin-int8", "--calib", "a.npz", "--prepare-only", "--no-parity", "-o", "out"]
    chosen = ["--calib-method", "minmax", "--set", "calibration.methods={images: mse}"]
    assert build(*options, *chosen) == 0
    found = read_manifest("out")["quantization"]["calibration"]
    assert (found["method"], found["tensors"]["images"]["method"]) == ("minmax", "mse")


@pytest.mark.parametrize(
    ("arguments", "status", "expected"),
    [
        (["-p", "orin-fp16", "--calib", "a.npz"], 2, "quantizes nothing"),
        (["-p", "orin-int8", "--calib", "none.npz"], 3, "none.npz"),
        (["-p", "orin-int8", "--calib", "bad.npz"], 3, "sample 2"),
        (["-p", "orin-int8", "--calib", "a.npz", "--calib", "a.npz"], 3, "twice"),
        (["-p", "orin-int8", "--calib", "a.npz", "--pin", "int8:relu"], 2, "relu"),
        (["-p", "orin-int8", "--calib", "a.npz", "--pin", "fp8:conv"], 5, "FP8"),
        (["-p", "orin-int8", "--calib", "a.npz", "--calib-method", "kl"], 2, "minmax"),
    ],
)
def test_what_cannot_be_calibrated_is_one_clear_error(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    status: int,
    expected: str,
) -> None:
    images = np.zeros((4, 3, 64, 64), np.float32)
    images[2, 0, 0, 0] = np.nan
    np.savez("bad.npz", images=images)
    before = sorted(folder.iterdir())
    assert build(*arguments) == status
    assert expected in capsys.readouterr().err
    assert sorted(folder.iterdir()) == before


def test_bad_samples_are_left_out_on_request(folder: Path) -> None:
    images = np.load("a.npz")["images"]
    worse = np.concatenate([images, images[:1]])
    worse[6, 0, 0, 0] = np.inf
    np.savez("worse.npz", images=worse)
    options = ["-p", "orin-int8", "--prepare-only", "--no-parity"]
    skip = ["--set", "calibration.nonfinite=skip"]
    assert build(*options, "--calib", "a.npz", "-o", "good") == 0
    assert build(*options, "--calib", "worse.npz", *skip, "-o", "left") == 0
    good, left = (read_manifest(n)["quantization"]["calibration"] for n in ("good", "left"))
    assert left["tensors"] == good["tensors"]
    (skipped,) = left["data"][0]["skipped"]
    assert "sample 6" in skipped


def test_a_prepared_folder_says_what_parity_needs_to_repeat_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert build("-p", "orin-int8", "--calib", "a.npz", "--prepare-only", "-o", "out") == 0
    options = ["--data", "b.npz", "--output", "json"]
    capsys.readouterr()
    assert run(["parity", "out", "--reference", "net.onnx", *options]) == 0
    model = onnx.load("out/model.onnx")
    weight = next(t for t in model.graph.initializer if t.data_type == onnx.TensorProto.INT8
                  and len(t.dims) == 4)  # fmt: skip
    values = np.frombuffer(weight.raw_data, np.int8).copy()
    values[: values.size // 2] = 0
    weight.raw_data = values.tobytes()
    onnx.save(model, "bug.onnx")
    assert run(["parity", "bug.onnx", "--reference", "net.onnx", "-p", "orin-int8", *options]) == 1


@pytest.mark.parametrize("profile", ["rtx4090-int8", "orin-int8"])
def test_check_says_what_quantizing_will_come_to(
    folder: Path, capsys: pytest.CaptureFixture[str], profile: str
) -> None:
    assert run(["check", "net.onnx", "-p", profile, "--output", "json"]) == 0
    findings = json.loads(capsys.readouterr().out)["findings"]
    audit = next(f for f in findings if f["code"] == "quantization-audit")
    assert "runs in INT8" in audit["message"]
