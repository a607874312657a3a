"""The file appears whole or not at all."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from trtdeploy.core.errors import InputError, UsageError
from trtdeploy.export.file_output import open_output_file


def test_file_and_data_appear_together(tmp_path: Path) -> None:
    with open_output_file(tmp_path / "new" / "m.onnx") as path:
        path.write_text("graph")
        path.with_name("m.onnx.data").write_text("weights")
        assert not (tmp_path / "new" / "m.onnx").exists()
    found = {entry.name: entry.read_text() for entry in (tmp_path / "new").iterdir()}
    assert found == {"m.onnx": "graph", "m.onnx.data": "weights"}


def test_a_failure_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "m.onnx"
    target.write_text("old")
    with contextlib.suppress(ZeroDivisionError), open_output_file(target) as path:
        path.write_text("half")
        _ = 1 / 0
    assert {entry.name: entry.read_text() for entry in tmp_path.iterdir()} == {"m.onnx": "old"}


def test_data_of_the_file_before_goes(tmp_path: Path) -> None:
    target = tmp_path / "m.onnx"
    target.write_text("old")
    target.with_name("m.onnx.data").write_text("old weights")
    with open_output_file(target) as path:
        path.write_text("small")
    assert {entry.name: entry.read_text() for entry in tmp_path.iterdir()} == {"m.onnx": "small"}


def test_data_that_belongs_to_no_file_there_stays(tmp_path: Path) -> None:
    (tmp_path / "m.onnx.data").write_text("somebody's")
    with open_output_file(tmp_path / "m.onnx") as path:
        path.write_text("small")
    assert (tmp_path / "m.onnx.data").read_text() == "somebody's"


def test_an_old_graph_never_reads_new_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "m.onnx"
    target.write_text("old graph")
    seen = []
    replace = Path.replace

    def watch(self: Path, other: Path) -> Path:
        done = replace(self, other)
        seen.append({entry.name: entry.read_text() for entry in tmp_path.glob("m.*")})
        return done

    monkeypatch.setattr(Path, "replace", watch)
    with open_output_file(target) as path:
        path.write_text("graph")
        path.with_name("m.onnx.data").write_text("weights")
    assert seen == [{"m.onnx.data": "weights"}, {"m.onnx": "graph", "m.onnx.data": "weights"}]


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a folder"), open_output_file(tmp_path):
        pass


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(InputError, match="cannot be written"),
        open_output_file(tmp_path / "file" / "m.onnx"),
    ):
        pass
