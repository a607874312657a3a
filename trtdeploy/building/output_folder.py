"""Output folders that appear whole or not at all."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trtdeploy.core.errors import InputError
from trtdeploy.core.files import sync_folder

if sys.platform != "win32":
    import fcntl

MANIFEST_NAME = "manifest.json"
OUTPUT_NAMES = frozenset(
    {"model.onnx", "model.onnx.data", "model.engine", MANIFEST_NAME, "report.json", "report.html",
     "junit.xml", "timing.cache", "build.log", "reproduce.sh", "calibration.json"}
)  # fmt: skip
"""Everything a build writes; a folder that holds anything else is somebody's and is left alone."""
_YOUNG_S = 2.0
_RENAME_EXCHANGE = 2
_AT_FDCWD = -100


def check_replaceable(target: Path) -> None:
    """Refuse to replace anything that trtdeploy did not write.

    A symbolic link is refused, whatever it points to: it cannot be exchanged together with what
    lies behind it, and to replace the link alone would leave an older build there.

    Raises:
        InputError: ``target`` is a link or a file, or holds anything but the files of a build.
    """
    if target.name in ("", ".."):
        raise InputError(
            f"{str(target)!r} is where you are, not a folder to write",
            hint="Name a folder of its own with --output-dir.",
        )
    if target.is_symlink():
        raise InputError(
            f"{target} is a symbolic link to {target.readlink()}; it is left alone",
            hint="Name the folder behind it, or another one, with --output-dir.",
        )
    if not target.exists():
        return
    kind = "a file"
    if target.is_dir():
        names = {entry.name for entry in target.iterdir()}
        foreign = sorted(names - OUTPUT_NAMES)
        if not names or (not foreign and MANIFEST_NAME in names and len(names) > 1):
            return
        kind = "a folder that trtdeploy did not write"
        if foreign:
            kind = f"a folder with something in it that trtdeploy did not write: {foreign[0]!r}"
    raise InputError(
        f"{target} exists and is {kind}; it is left alone",
        hint="Choose another place with --output-dir, or move it away yourself.",
    )


@contextmanager
def open_output_folder(target: Path) -> Iterator[Path]:
    """Yield an empty folder beside ``target`` that takes its name when the block succeeds.

    Every file is flushed to the disk first. When the block fails, or the process is killed,
    ``target`` stays what it was; leftovers of killed processes are removed by the next build.

    Raises:
        InputError: The parent folder cannot be written, or ``target`` may not be replaced.
    """
    check_replaceable(target)
    _remove_leftovers(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent))
    except OSError as error:
        raise InputError(
            f"the output folder {target} cannot be made: {error.strerror}",
            hint="Choose a writable place with --output-dir.",
        ) from error
    folder.chmod(0o777 & ~_current_umask())
    try:
        with _hold_lock(folder):
            yield folder
            sync_folder(folder)
            check_replaceable(target)
            _publish(folder, target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _publish(folder: Path, target: Path) -> None:
    if not target.exists():
        with contextlib.suppress(OSError):  # somebody else may have made it just now
            folder.rename(target)
            _sync_parent(target)
            return
    if not _exchange(folder, target):
        old = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent))
        target.rename(old / "replaced")
        folder.rename(target)
        shutil.rmtree(old, ignore_errors=True)
    _sync_parent(target)


def _exchange(first: Path, second: Path) -> bool:
    """Swap two folders in one step (Linux renameat2); False where the system cannot."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return False
    status = renameat2(
        _AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE
    )
    return bool(status == 0)


def _sync_parent(target: Path) -> None:
    descriptor = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _hold_lock(folder: Path) -> Iterator[None]:
    """Mark the folder as in use; the mark vanishes with the process, however it ends."""
    if sys.platform == "win32":
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _remove_leftovers(target: Path) -> None:
    """Remove temporary folders whose process is gone."""
    if sys.platform == "win32" or not target.parent.is_dir():
        return
    for folder in target.parent.glob(f".{_escape(target.name)}.*.tmp"):
        with contextlib.suppress(OSError):  # locked: another build is at work there
            if time.time() - folder.stat().st_mtime < _YOUNG_S:
                continue  # it may be between its creation and its lock
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)


def _escape(name: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)


def _current_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
