"""Are the files of an output folder those that its manifest lists?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from trtdeploy.building.manifest import BuiltFolder
from trtdeploy.core.errors import EngineFileError, InputError
from trtdeploy.core.files import compute_sha256
from trtdeploy.report.document import FolderFile


def check_folder(built: BuiltFolder) -> None:
    """Compare typed model and engine with the manifest.

    Raises:
        EngineFileError: A file is missing or another one; the hint says how to make it again.
    """
    check_typed_model(built)
    if built.manifest.engine is not None:
        check_files(built.path, built.manifest.engine.files, built.recompile)


def check_typed_model(built: BuiltFolder) -> None:
    """Compare the typed model alone; see ``check_folder``."""
    check_files(built.path, built.manifest.typed_model.files, built.rebuild)


def is_intact(built: BuiltFolder) -> bool:
    """True when the files a manifest lists are there, with the contents it lists."""
    try:
        check_folder(built)
    except EngineFileError:
        return False
    return True


def check_files(folder: Path, files: Mapping[str, str], remedy: str) -> None:
    """Compare files with the SHA-256 that is listed for each name.

    Args:
        folder: Where they lie.
        files: SHA-256 by file name.
        remedy: The command that makes them again.

    Raises:
        EngineFileError: One is missing or another one.
    """
    for name, expected in files.items():
        path = folder / name
        if not path.is_file():
            raise EngineFileError(
                f"{path} is missing, and its manifest lists it", hint=format_hint(remedy)
            )
        check_hash(path, compute_sha256(path), expected, remedy)


def check_hash(path: Path, found: str, expected: str, remedy: str) -> None:
    """Compare the SHA-256 of what was read from ``path``; see ``check_files``."""
    if found != expected:
        raise EngineFileError(
            f"{path} has SHA-256 {found}, and its manifest says {expected}: it was changed or "
            "replaced",
            hint=format_hint(remedy),
        )


def require_plain_files(folder: Path, files: Iterable[FolderFile]) -> None:
    """Refuse links and whatever else is no plain file; one that is missing is left to others.

    Raises:
        InputError: There is one.
    """
    for name in sorted(name for file in files for name in file.files):
        path = folder / name
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise InputError(
                f"{path} is not a plain file; it is left alone",
                hint="Copy the folder again, with the files themselves in it.",
            )


def format_hint(remedy: str) -> str:
    """Return what to do about a damaged folder."""
    return f"Copy the folder again, or: {remedy}"
