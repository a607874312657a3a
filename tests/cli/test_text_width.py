"""Tables, notes and hints fit a narrow terminal, and commands in them can be copied."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from tests.building.models import save_convnet
from trtdeploy.cli.main import run
from trtdeploy.cli.text_width import find_width, fit_text

HINT = (
    "hint: Copy the folder yolov8n.orin-fp16 to the device and run there: trtdeploy build "
    "yolov8n.orin-fp16 --rebuild   (for the Jetson AGX Orin of this machine: build from the ONNX "
    "file with --set device=agx-orin-64gb)"
)


@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_long_lines_are_wrapped_and_commands_kept(width: int) -> None:
    fitted = fit_text(HINT, width)
    assert "trtdeploy build yolov8n.orin-fp16 --rebuild" in fitted
    assert fitted.split() == HINT.split()
    longest = max(map(len, fitted.splitlines()))
    assert longest <= max(width, len("  trtdeploy build yolov8n.orin-fp16 --rebuild"))


def test_lines_keep_their_own_indent() -> None:
    text = "blockers:\n  - a node of a very long name that does not fit in here at all, you see"
    assert fit_text(text, 50).splitlines()[-1].startswith("    ")
    assert fit_text("a-b " * 30, 40).splitlines()[0].endswith("a-b")


def test_files_and_pipes_are_not_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert find_width(io.StringIO()) is None
    assert fit_text(HINT, None) == HINT
    monkeypatch.setenv("COLUMNS", "132")
    assert find_width(io.StringIO()) == 132
    monkeypatch.setenv("COLUMNS", "1")
    assert find_width(io.StringIO()) == 40


@pytest.mark.parametrize(
    "arguments",
    [["doctor"], ["profiles"], ["profiles", "--devices"], ["profiles", "--devices", "orin-nx-8gb"],
     ["profiles", "orin-fp16"]],
    ids=" ".join,
)  # fmt: skip
def test_listings_fit_80_columns(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(arguments) == 0
    printed = capsys.readouterr().out
    assert [line for line in printed.splitlines() if len(line) > 80] == []
    assert "…" not in printed


def test_notes_and_hints_fit_80_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    save_convnet(tmp_path / "net.onnx")
    assert run(["build", "net.onnx", "-p", "h100-fp16", "--no-parity"]) == 5
    captured = capsys.readouterr()
    assert "trtdeploy build net.h100-fp16" in captured.err
    assert max(map(len, (captured.out + captured.err).splitlines())) <= 80


def test_devices_speak_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["profiles", "--devices", "--output", "json"]) == 0
    devices = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)["devices"]}
    assert devices["orin-nano-8gb"]["compute_capability"] == "8.7"
    assert devices["rtx4090"]["tensorrt_rtx"] is True
    assert devices["cpu"]["compute_capability"] is None
    assert run(["profiles", "--devices", "l4", "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["memory"] == 24 << 30


def test_devices_and_overrides_do_not_go_together(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["profiles", "--devices", "--set", "recipe=fp16"]) == 2
    assert run(["profiles", "--devices", "l40"]) == 3
    assert "Did you mean 'l40s'?" in capsys.readouterr().err
