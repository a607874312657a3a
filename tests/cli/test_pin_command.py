"""``trtdeploy pin`` as a user types it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from tests.pinning.test_finding import SPOILED, outlier_network, save, save_samples
from trtdeploy.cli.main import run
from trtdeploy.config.loading import load_deploy_profile

COMMAND = [
    "pin", "outlier.onnx", "-p", "rtx4090-int8", "--calib", "calib.npz", "--data", "data.npz",
    "--calib-method", "minmax",
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    save(outlier_network(), tmp_path / "outlier.onnx")
    save_samples(tmp_path / "calib.npz", 1)
    save_samples(tmp_path / "data.npz", 2)
    return tmp_path


def test_the_table_fits_80_columns_and_ends_with_what_to_type(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run([*COMMAND, "--target", "sqnr=25", "-o", "hybrid.yaml"]) == 0
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert re.match(r"node +op +alone +FLOPs +pin", lines[0])
    assert re.match(rf"{SPOILED} +MatMul +\d+\.\d dB +\d+\.\d% +fp16$", lines[1])
    assert lines[2].startswith("  input")
    assert f"--pin fp16:{SPOILED}" in lines
    assert f'    "{SPOILED}": fp16' in lines
    assert re.search(r"plain +\d", captured.out)
    assert re.search(r"all fp16 +\d", captured.out)
    assert re.search(r"1 pinned +\d", captured.out)
    assert "wrote hybrid.yaml" in captured.err
    profile = load_deploy_profile("hybrid.yaml").profile
    assert (profile.recipe, profile.precision.nodes) == ("int8", {SPOILED: "fp16"})


def test_json_holds_the_same(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*COMMAND, "--target", "sqnr=25", "--output", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["reached"] is True
    assert found["pins"] == [f"fp16:{SPOILED}"]
    assert found["precision_nodes"] == {SPOILED: "fp16"}
    assert found["plain"]["sqnr_db"] < 25 < found["hybrid"]["sqnr_db"]
    assert found["candidates"][0]["node"] == SPOILED
    assert found["quantized_flops_share"]["hybrid"] < found["quantized_flops_share"]["plain"]


def test_what_no_set_reaches_fails_and_writes_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [*COMMAND, "--target", "sqnr=120", "--output", "json", "-o", "hybrid.yaml"]
    assert run(command) == 1
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert document["error"]["kind"] == "CheckFailedError"
    assert document["pins"] == []
    assert not (folder / "hybrid.yaml").exists()
    assert "no set of pins reaches sqnr=120" in captured.err


def test_a_target_that_is_reached_needs_no_pins(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*COMMAND, "--target", "sqnr=1"]) == 0
    assert "none needed" in capsys.readouterr().out


@pytest.mark.parametrize(
    "command",
    [
        ["pin", "outlier.onnx"],
        ["pin", "outlier.onnx", "-p", "rtx4090-int8"],
        ["pin", "outlier.onnx", "-p", "rtx4090-fp16", "--target", "snr=3"],
        ["pin", "outlier.onnx", "-p", "rtx4090-fp32"],
    ],
)
def test_wrong_usage(folder: Path, command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(command) == 2
    assert "hint:" in capsys.readouterr().err


def test_samples_that_do_not_fit_are_bad_input(folder: Path) -> None:
    np.savez(folder / "data.npz", x=np.zeros((2, 7), np.float32))
    assert run([*COMMAND, "--target", "sqnr=25"]) == 3


def test_a_place_that_cannot_be_written_is_refused_before_the_search(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "none" / "mine.yaml"
    assert run(["pin", "missing.onnx", "-p", "orin-int8", "-o", str(path)]) == 3
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"{path} cannot be written" in " ".join(printed.err.split())
