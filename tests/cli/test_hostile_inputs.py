"""Bad input: one clear error, the right exit code, no traceback, nothing written."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from tests.building.models import save_convnet
from trtdeploy.cli.main import run


def point_outside(folder: Path, location: str) -> None:
    model = onnx.load(save_convnet(folder / "net.onnx"))
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", location
    (folder / "bad.onnx").write_bytes(model.SerializeToString())


def truncate(folder: Path) -> None:
    whole = save_convnet(folder / "net.onnx").read_bytes()
    (folder / "bad.onnx").write_bytes(whole[: len(whole) // 2])


def hide(folder: Path) -> None:
    save_convnet(folder / "bad.onnx").chmod(0)


MODELS: dict[str, tuple[Callable[[Path], object], str]] = {
    "empty": (lambda f: (f / "bad.onnx").write_bytes(b""), "is empty"),
    "text": (lambda f: (f / "bad.onnx").write_text("hello\n" * 50), "is not an ONNX model"),
    "truncated": (truncate, "is not an ONNX model"),
    "directory": (lambda f: (f / "bad.onnx").mkdir(), "is not an output folder"),
    "missing": (lambda f: None, "cannot be read"),
    "unreadable": (hide, "cannot be read"),
    "absolute": (lambda f: point_outside(f, "/etc/passwd"), "outside the model's folder"),
    "climbing": (lambda f: point_outside(f, "../../etc/passwd"), "outside the model's folder"),
}


@pytest.mark.parametrize("case", MODELS)
def test_bad_model(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if case == "unreadable" and os.geteuid() == 0:
        pytest.skip("root reads every file")
    make, expected = MODELS[case]
    make(tmp_path)
    monkeypatch.chdir(tmp_path)
    before = sorted(path.name for path in tmp_path.iterdir())
    assert run(["build", "bad.onnx", "--profile", "orin-fp16"]) == 3
    captured = capsys.readouterr()
    assert len(re.findall("^error:", captured.err, re.MULTILINE)) == 1
    assert expected in " ".join(captured.err.split())
    assert "Traceback" not in captured.err
    assert captured.out == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == before


PROFILES = {
    "tag": ("device: !!python/object/apply:os.system ['touch pwned']\n", "tag"),
    "typo": ("extends: orin-fp16\nbuild: {workspce: 1GiB}\n", "Did you mean 'workspace'?"),
    "impossible": ("extends: orin-fp16\nrecipe: fp8\n", "FP8"),
    "empty": ("", "empty"),
}


@pytest.mark.parametrize("case", PROFILES)
def test_bad_profile(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text, expected = PROFILES[case]
    (tmp_path / "mine.yaml").write_text(text)
    save_convnet(tmp_path / "net.onnx")
    monkeypatch.chdir(tmp_path)
    assert run(["build", "net.onnx", "--profile", "mine.yaml"]) == 3
    error = capsys.readouterr().err
    assert expected in error
    assert "Traceback" not in error
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.yaml", "net.onnx"]


def test_an_unknown_option_and_a_missing_argument_are_usage_errors(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["build", "--nonsense"]) == 2
    assert run(["build"]) == 2
    assert run(["check", "x.onnx"]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_an_unknown_profile_lists_the_nearest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = save_convnet(tmp_path / "net.onnx")
    assert run(["build", str(model), "--profile", "orin-fp61"]) == 3
    assert "Did you mean 'orin-fp16'?" in capsys.readouterr().err


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    command = f"{sys.executable} -m trtdeploy profiles h100-fp16 | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


def test_names_of_any_bytes_end_in_files_that_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    model = onnx.load(save_convnet(tmp_path / "net.onnx"))
    for node in model.graph.node:
        node.name += "\x1b[2J\u202e\x00"
    onnx.save(model, "net.onnx")
    samples = Path(os.fsdecode(b"d\xfe"))
    try:
        samples.mkdir()
    except OSError:
        pytest.skip("this file system takes UTF-8 only")
    images = np.random.default_rng(0).random((2, 3, 64, 64), np.float32)
    np.savez(samples / os.fsdecode(b"s\xff.npz"), images=images)
    build = ["build", "net.onnx", "-p", "orin-int8", "--calib", str(samples), "--prepare-only"]
    assert run([*build, "--symbol", "batch=2"]) == 0
    assert run([*build, "--symbol", "batch=2", "--output", "json"]) == 0  # finds the same build
    script = Path("net.orin-int8/reproduce.sh").read_bytes()
    assert b"d\xfe" in script
    capsys.readouterr()
    for command in ("report", "inspect"):
        assert run([command, "net.orin-int8"]) == 0
        capsys.readouterr()
        assert run([command, "net.orin-int8", "--output", "json"]) == 0
        json.loads(capsys.readouterr().out.encode("utf-8"))
    again = ["parity", "net.orin-int8", "-r", "net.onnx", "--data", str(samples)]
    assert run([*again, "--output", "json"]) == 0
    json.loads(capsys.readouterr().out.encode("utf-8"))
