from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from trtdeploy.core.files import compute_sha256, save_text, sync_folder


def test_sha256_of_a_file_longer_than_one_chunk(tmp_path: Path) -> None:
    data = bytes(range(256)) * 5000
    path = tmp_path / "data.bin"
    path.write_bytes(data)
    assert compute_sha256(path) == hashlib.sha256(data).hexdigest()


def test_text_replaces_the_file_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text("old")
    save_text(path, "画像 → new")
    assert path.read_text(encoding="utf-8") == "画像 → new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_write_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        save_text(path, "\ud800 is no text")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_sync_reaches_nested_files(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "build.log").write_text("done")
    sync_folder(tmp_path)
