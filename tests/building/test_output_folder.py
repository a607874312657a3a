"""Output folders appear whole or not at all."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trtdeploy.building.output_folder import check_replaceable, open_output_folder
from trtdeploy.core.errors import InputError


def write(folder: Path, text: str) -> None:
    (folder / "manifest.json").write_text(text)
    (folder / "model.engine").write_text(text)


def visible(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_new_folder_appears_with_everything(tmp_path: Path) -> None:
    with open_output_folder(tmp_path / "out") as folder:
        write(folder, "new")
        assert not (tmp_path / "out").exists()
    assert visible(tmp_path) == ["out"]
    assert visible(tmp_path / "out") == ["manifest.json", "model.engine"]


def test_an_old_folder_is_replaced_as_a_whole(tmp_path: Path) -> None:
    for text in ("old", "new"):
        with open_output_folder(tmp_path / "out") as folder:
            write(folder, text)
            if text == "old":
                (folder / "timing.cache").write_text("only in the old one")
    assert visible(tmp_path) == ["out"]
    assert visible(tmp_path / "out") == ["manifest.json", "model.engine"]
    assert (tmp_path / "out" / "model.engine").read_text() == "new"


def test_a_failure_leaves_the_old_folder(tmp_path: Path) -> None:
    with open_output_folder(tmp_path / "out") as folder:
        write(folder, "old")
    with contextlib.suppress(RuntimeError), open_output_folder(tmp_path / "out") as folder:
        write(folder, "new")
        raise RuntimeError
    assert visible(tmp_path) == ["out"]
    assert (tmp_path / "out" / "model.engine").read_text() == "old"


def test_foreign_folders_and_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("precious")
    (tmp_path / "file").write_text("precious")
    for name in ("mine", "file"):
        with pytest.raises(InputError, match="left alone"), open_output_folder(tmp_path / name):
            pass
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "precious"


def test_an_empty_folder_may_be_filled(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with open_output_folder(tmp_path / "out") as folder:
        write(folder, "new")
    assert visible(tmp_path / "out") == ["manifest.json", "model.engine"]


def test_an_unwritable_parent_is_an_input_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(InputError, match="cannot be made"),
        open_output_folder(tmp_path / "file" / "out"),
    ):
        pass


HOLD = """
import sys, time
from pathlib import Path
from trtdeploy.building.output_folder import check_replaceable, open_output_folder
with open_output_folder(Path(sys.argv[1])) as folder:
    (folder / "manifest.json").write_text("half")
    print("ready", flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="leftovers are removed on POSIX systems")
def test_leftovers_of_a_killed_build_go_and_those_of_a_living_one_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trtdeploy.building.output_folder._YOUNG_S", -1.0)
    command = [sys.executable, "-c", HOLD, str(tmp_path / "out")]
    holders = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    for holder in holders:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"ready\n"
    os.kill(holders[0].pid, signal.SIGKILL)
    holders[0].wait()
    assert len(visible(tmp_path)) == 2
    with open_output_folder(tmp_path / "out") as folder:
        write(folder, "new")
    assert len(visible(tmp_path)) == 2  # the result, and the folder of the living build
    assert (tmp_path / "out" / "model.engine").read_text() == "new"
    holders[1].kill()
    holders[1].wait()
    for holder in holders:
        assert holder.stdout is not None
        holder.stdout.close()


def publish_often(target: str, text: str) -> None:
    for _ in range(30):
        with open_output_folder(Path(target)) as folder:
            write(folder, text)


def test_concurrent_builds_leave_one_whole_folder(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    target = tmp_path / "out"
    workers = [context.Process(target=publish_often, args=(str(target), t)) for t in ("a", "b")]
    for worker in workers:
        worker.start()
    deadline = time.monotonic() + 60
    while any(worker.is_alive() for worker in workers) and time.monotonic() < deadline:
        with contextlib.suppress(FileNotFoundError):
            before = target.stat().st_ino
            names = visible(target)
            if target.stat().st_ino == before:  # not replaced while it was read
                assert names == ["manifest.json", "model.engine"]
    for worker in workers:
        worker.join(10)
        assert worker.exitcode == 0
    contents = {(target / name).read_text() for name in visible(target)}
    assert len(contents) == 1
    assert visible(tmp_path) == ["out"]


def test_a_foreign_manifest_does_not_make_a_folder_ours(tmp_path: Path) -> None:
    web = tmp_path / "web"
    web.mkdir()
    (web / "manifest.json").write_text('{"name": "PWA"}')
    with pytest.raises(InputError, match="left alone"):
        check_replaceable(web)
    (web / "model.onnx").write_text("")
    (web / "thesis.tex").write_text("precious")
    with pytest.raises(InputError, match=r"thesis\.tex"):
        check_replaceable(web)


@pytest.mark.parametrize("kind", ["folder of a build", "empty folder", "file", "nothing"])
def test_a_link_is_refused_whatever_it_points_to(kind: str, tmp_path: Path) -> None:
    behind = tmp_path / "behind"
    if kind == "folder of a build":
        with open_output_folder(behind) as folder:
            write(folder, "precious")
    elif kind == "empty folder":
        behind.mkdir()
    elif kind == "file":
        behind.write_text("precious")
    link = tmp_path / "out"
    link.symlink_to(behind)
    before = visible(tmp_path)
    with pytest.raises(InputError, match=r"symbolic link to .*behind; it is left alone") as info:
        check_replaceable(link)
    assert "--output-dir" in info.value.hint
    with pytest.raises(InputError, match="symbolic link"), open_output_folder(link):
        raise AssertionError("refused before anything is done")
    assert visible(tmp_path) == before
    assert link.is_symlink()
    if kind == "folder of a build":
        assert (behind / "model.engine").read_text() == "precious"


def test_a_link_further_up_is_followed(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "shortcut").symlink_to(tmp_path / "disk")
    with open_output_folder(tmp_path / "shortcut" / "out") as folder:
        write(folder, "new")
    assert visible(tmp_path / "disk") == ["out"]
