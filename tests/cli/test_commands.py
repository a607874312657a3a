"""Commands as a user types them: exit codes, stdout for data, stderr for the rest."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import onnx
import pytest

from tests.building.models import save_convnet, save_unsupported
from trtdeploy.backends.installed import is_installed
from trtdeploy.cli.main import run
from trtdeploy.core import errors

needs_rtx = pytest.mark.skipif(
    not is_installed("tensorrt_rtx"), reason="TensorRT-RTX is not installed"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    save_convnet(tmp_path / "yolov8n.onnx")
    return tmp_path


def read_json(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_the_sentence_everything_serves(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["build", "yolov8n.onnx", "--profile", "orin-fp16"]) == 5
    captured = capsys.readouterr()
    assert "yolov8n.orin-fp16" in captured.out
    assert "trtdeploy build yolov8n.orin-fp16" in captured.err
    assert (folder / "yolov8n.orin-fp16" / "model.onnx").is_file()


def test_prepare_only_is_a_success(folder: Path) -> None:
    assert run(["build", "yolov8n.onnx", "--profile", "h100-fp16", "--prepare-only"]) == 0


@needs_rtx
def test_build_prints_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["build", "yolov8n.onnx", "-p", "rtx4090-fp16", "--output", "json"]) == 0
    result = read_json(capsys)
    assert Path(result["engine"]).is_file()
    assert result["status"] == "engine"


@needs_rtx
def test_inspect_knows_what_build_wrote(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["build", "yolov8n.onnx", "-p", "rtx4090-fp16"]) == 0
    capsys.readouterr()
    assert run(["inspect", "yolov8n.rtx4090-fp16", "--output", "json"]) == 0
    assert read_json(capsys)["plan"]["compute_capabilities"] == ["8.9"]
    assert run(["inspect", "yolov8n.rtx4090-fp16/model.engine"]) == 0
    assert "TensorRT-RTX" in capsys.readouterr().out


def test_inspect_shows_an_onnx_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inspect", "yolov8n.onnx"]) == 0
    assert "images: float32 batchx3x64x64" in capsys.readouterr().out


def test_check_has_exit_code_1_for_blockers(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_unsupported(folder / "bad.onnx")
    assert run(["check", "bad.onnx", "-p", "rtx4090-fp16", "--output", "json"]) == 1
    assert read_json(capsys)["counts"]["blocker"] > 0
    assert run(["check", "yolov8n.onnx", "-p", "rtx4090-fp16"]) == 0
    assert "no blockers" in capsys.readouterr().out


def test_errors_are_json_when_asked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["build", "nothing.onnx", "-p", "orin-fp16", "--output", "json"]) == 3
    error = read_json(capsys)["error"]
    assert error["exit_code"] == 3
    assert "nothing.onnx" in error["message"]


def test_profiles_and_doctor_speak_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["profiles", "--output", "json"]) == 0
    names = {entry["name"] for entry in read_json(capsys)["profiles"]}
    assert {"orin-fp16", "h100-fp16", "rtx4090-fp16", "cpu-fp32"} <= names
    assert run(["profiles", "orin-fp16", "--set", "build.workspace=2GiB", "--output", "json"]) == 0
    assert read_json(capsys)["profile"]["build"]["workspace"] == 2 << 30
    assert run(["doctor", "--output", "json"]) == 0
    assert read_json(capsys)["environment"]["packages"]["onnx"]


@needs_rtx
def test_ctrl_c_ends_with_130_and_leaves_nothing(folder: Path) -> None:
    command = [sys.executable, "-m", "trtdeploy", "build", "yolov8n.onnx", "-p", "rtx4090-fp16"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    while "type" not in process.stderr.readline():  # the next step is the compiler's
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=30)
    if process.returncode == 0:
        pytest.skip("the build was faster than the interrupt")
    assert process.returncode == 130
    assert "Traceback" not in error
    assert sorted(path.name for path in folder.iterdir()) == ["yolov8n.onnx"]


def all_error_classes() -> list[type[errors.TrtdeployError]]:
    found = [errors.TrtdeployError]
    for cls in found:
        found.extend(cls.__subclasses__())
    return found


@pytest.mark.parametrize("cls", all_error_classes())
def test_every_error_class_has_a_message_a_hint_and_an_exit_code(
    cls: type[errors.TrtdeployError],
) -> None:
    error = cls("what", hint="then")
    assert (error.message, error.hint) == ("what", "then")
    assert 1 <= cls.exit_code <= 6
    assert cls.__name__.endswith("Error")
    assert cls.__doc__


def test_check_lists_every_malformed_node(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = onnx.load(folder / "yolov8n.onnx")
    for node in model.graph.node[:2]:
        del node.input[:]
    (folder / "bad.onnx").write_bytes(model.SerializeToString())
    assert run(["check", "bad.onnx", "-p", "rtx4090-fp16", "--output", "json"]) == 1
    nodes = {f["node"] for f in read_json(capsys)["findings"] if f["severity"] == "blocker"}
    assert {"conv", "relu"} <= nodes


def test_a_prepared_folder_is_one_json_document(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["build", "yolov8n.onnx", "-p", "orin-fp16", "--output", "json"]) == 5
    result = read_json(capsys)
    assert result["status"] == "prepared"
    assert result["error"]["exit_code"] == 5


def test_escape_sequences_in_names_stay_out_of_the_terminal(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = onnx.load(folder / "yolov8n.onnx")
    model.graph.input[0].name = model.graph.node[0].input[0] = "\x1b[2Jimages"
    onnx.save(model, folder / "evil.onnx")
    assert run(["inspect", "evil.onnx"]) == 0
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert "images" in printed
