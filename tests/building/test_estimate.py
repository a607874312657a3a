"""How long compiling took last time is read from neighbours, whatever else lies there."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.runtime.folders import Folder
from trtdeploy.building.compiling import estimate_compile_s

SOURCE = "0" * 64
COMPILED = {"name": "compile", "status": "ok", "seconds": 12.5, "detail": ""}


def write(path: Path, seconds: float, source: str = SOURCE) -> None:
    folder = Folder(path).write()

    def change(manifest: dict[str, object]) -> None:
        manifest["steps"] = [{**COMPILED, "seconds": seconds}]
        manifest["source"]["sha256"] = source  # type: ignore[index]

    folder.change(change)


def test_the_same_place_counts_most(tmp_path: Path) -> None:
    write(tmp_path / "a", 5.0)
    write(tmp_path / "b", 7.0)
    write(tmp_path / "c", 9.0, source="1" * 64)
    assert estimate_compile_s(tmp_path / "a", SOURCE) == 5.0
    assert estimate_compile_s(tmp_path / "new", SOURCE) == 7.0
    assert estimate_compile_s(tmp_path / "new", "2" * 64) is None
    assert estimate_compile_s(tmp_path / "missing" / "new", SOURCE) is None


def test_other_peoples_folders_do_no_harm(tmp_path: Path) -> None:
    for name, text in (("web", '{"name": "PWA"}'), ("text", SOURCE), ("list", f'["{SOURCE}"]')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest.json").write_text(text)
    (tmp_path / "damaged").mkdir()
    damaged = {"schema_version": 2, "source": {"sha256": SOURCE}, "steps": [7]}
    (tmp_path / "damaged" / "manifest.json").write_text(json.dumps(damaged))
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / "manifest.json")
    (tmp_path / "folder" / "manifest.json").mkdir(parents=True)
    assert estimate_compile_s(tmp_path / "new", SOURCE) is None
    write(tmp_path / "mine", 3.0)
    assert estimate_compile_s(tmp_path / "new", SOURCE) == 3.0
