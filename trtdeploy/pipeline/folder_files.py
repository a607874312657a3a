"""Are the files of an output folder those that its manifest lists?"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from trtdeploy.core.errors import EngineFileError, InputError
from trtdeploy.core.files import compute_sha256


def list_files(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return the SHA-256 of every file that a manifest lists, by name."""
    engine = manifest["engine"]
    return {**manifest["typed_model"]["files"], **({} if engine is None else engine["files"])}


def check_folder(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Compare typed model and engine with the manifest, which ``load_manifest`` returned.

    Raises:
        EngineFileError: A file is missing or another one; the hint says how to make it again.
    """
    check_typed_model(folder, manifest)
    if manifest["engine"] is not None:
        check_files(folder, manifest["engine"]["files"], format_recompile(folder))


def check_typed_model(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Compare the typed model alone; see ``check_folder``."""
    source, profile = manifest["source"]["file"], manifest["profile"]["profile"]["name"]
    remedy = format_rebuild(folder, source, profile)
    check_files(folder, manifest["typed_model"]["files"], remedy)


def is_intact(folder: Path, manifest: Mapping[str, Any]) -> bool:
    """True when the files a manifest lists are there, with the contents it lists."""
    try:
        check_folder(folder, manifest)
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


def require_plain_files(folder: Path, names: Iterable[str]) -> None:
    """Refuse links and whatever else is no plain file; one that is missing is left to others.

    Raises:
        InputError: There is one.
    """
    for name in sorted(names):
        path = folder / name
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise InputError(
                f"{path} is not a plain file; it is left alone",
                hint="Copy the folder again, with the files themselves in it.",
            )


def format_hint(remedy: str) -> str:
    """Return what to do about a damaged folder."""
    return f"Copy the folder again, or: {remedy}"


def format_recompile(folder: Path) -> str:
    """Return the command that compiles the typed model of a folder again."""
    return f"trtdeploy build {shlex.quote(str(folder))} --rebuild"


def format_rebuild(folder: Path, source: str, deploy_profile: str) -> str:
    """Return the command that makes a folder again from its source model."""
    return (
        f"trtdeploy build {shlex.quote(source)} --profile {shlex.quote(deploy_profile)} "
        f"--output-dir {shlex.quote(str(folder))} --rebuild"
    )
