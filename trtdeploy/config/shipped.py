"""Where the shipped profiles lie, and how names and paths are told apart."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from trtdeploy.core.errors import DeployProfileError
from trtdeploy.core.names import suggest_name

Kind = Literal["deploy profile", "device"]

_PACKAGE: Final = Path(__file__).resolve().parents[1]
# A wheel carries profiles/ as trtdeploy/profiles_data; a checkout has it beside the package.
_CANDIDATES: Final = (_PACKAGE / "profiles_data", _PACKAGE.parent / "profiles")
_SUFFIXES: Final = (".yaml", ".yml")


def find_shipped_folder(kind: Kind) -> Path:
    """Return the folder of shipped profiles or devices.

    Raises:
        DeployProfileError: The installation lacks them.
    """
    for candidate in _CANDIDATES:
        if (candidate / "devices").is_dir():
            return candidate / "devices" if kind == "device" else candidate
    raise DeployProfileError(
        "the shipped profiles are missing from this installation",
        hint="Install trtdeploy again, the way it was installed.",
    )


def list_shipped(kind: Kind) -> tuple[str, ...]:
    """Return the sorted names of the shipped profiles or devices."""
    return tuple(sorted(path.stem for path in find_shipped_folder(kind).glob("*.yaml")))


def find_config_file(name_or_path: str, kind: Kind, folder: Path) -> Path:
    """Return the file behind a shipped name or a path.

    Args:
        name_or_path: A shipped name, or a path (has a separator, ends in ``.yaml``, or exists).
        kind: What is looked for.
        folder: What a relative path refers to.

    Raises:
        DeployProfileError: No such name and no such file.
    """
    if _looks_like_path(name_or_path):
        return folder / name_or_path
    if name_or_path in list_shipped(kind):
        return find_shipped_folder(kind) / f"{name_or_path}.yaml"
    beside = folder / name_or_path
    if name_or_path and _is_file(beside):
        return beside
    raise _explain_missing(name_or_path, kind, folder)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name too long, or not allowed, names no file
        return False


def _looks_like_path(text: str) -> bool:
    return "/" in text or "\\" in text or text.endswith(_SUFFIXES)


def _explain_missing(name: str, kind: Kind, folder: Path) -> DeployProfileError:
    hint = f"A file of your own is given by its path, like ./{name or 'my'}.yaml"
    if name and _is_file(folder / f"{name}.yaml"):
        hint = f"There is a file {name}.yaml here: give it as ./{name}.yaml"
    return DeployProfileError(
        f"there is no {kind} {name!r}. {suggest_name(name, list_shipped(kind))}", hint=hint
    )


def describe_file(path: Path) -> str:
    """Return the file's bare name when it is shipped, else the path as it was given."""
    return path.name if any(folder in path.parents for folder in _CANDIDATES) else str(path)
