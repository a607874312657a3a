"""Finished folders as a user meets them: an engine is not lost, a damaged one not approved."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.building.models import save_convnet
from trtdeploy.cli.main import run

FOLDER = "net.rpi5-fp16"
BUILD = ["build", "net.onnx", "-p", "rpi5-fp16", "--no-parity"]
PARITY = ["parity", FOLDER, "--reference", "net.onnx"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished folder; ONNX Runtime's engine is the typed model, so an engine file is added."""
    monkeypatch.chdir(tmp_path)
    save_convnet(tmp_path / "net.onnx")
    assert run(BUILD) == 0
    return tmp_path / FOLDER


@pytest.fixture
def engine(folder: Path) -> Path:
    """The engine file of that folder, listed in its manifest as a compiler's is."""
    path = folder / "model.engine"
    path.write_bytes((folder / "model.onnx").read_bytes())
    manifest = read_manifest(folder)
    listed = dict(manifest["typed_model"])
    listed.update(file=path.name, files={path.name: listed["sha256"]})
    manifest["engine"] = {key: listed[key] for key in ("file", "bytes", "sha256", "files")}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return path


def read_manifest(folder: Path) -> Any:
    return json.loads((folder / "manifest.json").read_text())


def change(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1] + b"?")


def link(path: Path) -> None:
    path.symlink_to(path.rename(path.parent.parent / path.name))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (change, "has SHA-256"),
        (Path.unlink, "is missing"),
        (link, "is not a plain file"),
    ],
    ids=["changed", "deleted", "linked"],
)
@pytest.mark.parametrize("name", ["model.engine", "model.onnx"])
def test_parity_is_not_measured_of_a_damaged_folder(
    engine: Path,
    name: str,
    damage: Callable[[Path], None],
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    damage(engine.with_name(name))
    assert run([*PARITY, "--output", "json"]) == 3
    error = json.loads(capsys.readouterr().out)["error"]
    assert f"{FOLDER}/{name} {said}" in error["message"]
    source = "net.onnx --profile rpi5-fp16 --output-dir "
    repair = {
        "model.engine": f"trtdeploy build {FOLDER} --rebuild",
        "model.onnx": f"trtdeploy build {source}{FOLDER} --rebuild",
    }
    assert damage is link or repair[name] in error["hint"]


def test_parity_is_measured_of_a_whole_folder(engine: Path) -> None:
    assert run(PARITY) == 0
    assert engine.is_file()


@pytest.mark.parametrize(
    "options", [[], ["--no-parity"], ["--no-parity", "--set", "parity.atol=1"]], ids=str
)
def test_prepare_only_does_not_delete_an_engine(
    engine: Path, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = read_manifest(engine.parent)
    (engine.parent / "manifest.json").write_text(json.dumps({**manifest, "key": "0" * 64}))
    command = ["build", "net.onnx", "-p", "rpi5-fp16", "--prepare-only", *options]
    assert run(command) == 2
    said = capsys.readouterr().err
    assert f"{FOLDER} holds the engine of another build" in said
    assert "--rebuild" in said
    assert engine.is_file()
    assert run([*command, "--rebuild"]) == 0
    assert not engine.exists()
    assert read_manifest(engine.parent)["status"] == "prepared"


def test_a_machine_that_cannot_compile_does_not_delete_an_engine(
    engine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["build", "net.onnx", "-p", "orin-fp16", "--no-parity", "-o", FOLDER]
    assert run(command) == 2
    assert "Jetson Orin Nano" in capsys.readouterr().err
    assert engine.is_file()
    assert run([*command, "--rebuild"]) == 5
    assert not engine.exists()
    assert run(command) == 5  # prepared by prepared is no loss


def test_an_engine_is_kept_whatever_its_manifest_says(engine: Path) -> None:
    (engine.parent / "manifest.json").write_text("{}")
    assert run([*BUILD, "--prepare-only"]) == 2
    assert engine.is_file()


def test_the_very_same_build_is_already_there(
    engine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert run([*BUILD, "--prepare-only"]) == 0
    assert "already there" in capsys.readouterr().out
    assert engine.is_file()


def test_onnxruntime_folder_is_a_finished_one_too(folder: Path) -> None:
    assert run(["build", "net.onnx", "-p", "rpi5-fp16", "--prepare-only"]) == 2  # it owes parity
    assert read_manifest(folder)["status"] == "engine"
