"""Inspection of files that are not what their name says, and of damaged folders."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import trtdeploy
from tests.building.models import save_convnet
from trtdeploy.core.errors import InputError


def test_an_onnx_file_is_recognised_by_content(tmp_path: Path) -> None:
    path = save_convnet(tmp_path / "model.bin")
    facts = trtdeploy.inspect(path)
    assert facts["kind"] == "onnx"
    assert facts["operators"]["Conv"] == 1
    assert facts["inputs"][0]["shape"] == ["batch", 3, 64, 64]


@pytest.mark.parametrize(("name", "text"), [("a.engine", "hello"), ("a.onnx", "hello"), ("a", "")])
def test_other_files_are_refused(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError):
        trtdeploy.inspect(tmp_path / name)


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not an output folder"):
        trtdeploy.inspect(tmp_path)


@pytest.mark.parametrize(
    "damage",
    [
        "not json",
        "[]",
        "{}",
        json.dumps({"schema_version": 999}),
        json.dumps({"schema_version": 2, "source": 5}),
    ],
)
def test_damaged_manifests_are_one_clear_error(
    damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = trtdeploy.build(save_convnet(tmp_path / "net.onnx"), "orin-fp16").folder
    (folder / "manifest.json").write_text(damage)
    with pytest.raises(InputError, match=r"manifest\.json"):
        trtdeploy.inspect(folder)
