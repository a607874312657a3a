"""Virtual environments: one for trtdeploy, one for each peer, so that no tool shapes another's."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.processes import Command

ROOT = Path(__file__).resolve().parents[1]
DEFAULT_FOLDER = Path(__file__).resolve().parent / ".venv-peers"

_VERSIONS = """
import importlib.metadata as metadata, json, platform, sys
found = {"Python": platform.python_version()}
for name in sys.argv[1:]:
    try:
        found[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        pass
print(json.dumps(found))
"""


class InstallError(Exception):
    """An environment could not be made; the message is for the user."""


@dataclass(frozen=True)
class Environment:
    """Packages that live together.

    Attributes:
        name: Folder name below the environments' folder.
        requirements: What pip is asked for.
        shown: Packages whose versions belong into a table.
        from_checkout: It holds a wheel of this checkout, installed as a user gets it.
    """

    name: str
    requirements: tuple[str, ...]
    shown: tuple[str, ...]
    from_checkout: bool = False


TRTDEPLOY = Environment(
    "trtdeploy", (str(ROOT),), ("trtdeploy", "onnx", "onnxruntime", "numpy"), from_checkout=True
)
TRTDEPLOY_RTX = Environment(
    "trtdeploy-rtx",
    (f"{ROOT}[rtx]",),
    ("trtdeploy", "onnx", "numpy", "tensorrt-rtx", "typer"),
    from_checkout=True,
)


def install(environment: Environment, folder: Path, progress: Callable[[str], None]) -> Path:
    """Make sure that ``environment`` exists below ``folder`` and return its Python.

    It is made again when its requirements or, for trtdeploy, the sources have changed.

    Raises:
        InstallError: pip failed; the message ends with its last lines.
    """
    target = folder.resolve() / environment.name
    python = target / "bin" / "python"
    stamp = target / ".benchmark-installed"
    wanted = _describe(environment)
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
        return python
    progress(f"installing {' '.join(environment.requirements)} into {target}")
    stamp.unlink(missing_ok=True)
    if not python.exists():
        shutil.rmtree(target, ignore_errors=True)
        _create(target)
    pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    _run([python, *pip, *environment.requirements])
    stamp.write_text(wanted, encoding="utf-8")
    return python


def read_versions(python: Path, packages: Iterable[str]) -> dict[str, str]:
    """Return the versions of Python and of those ``packages`` that are installed there."""
    done = _run([python, "-I", "-c", _VERSIONS, *packages])
    versions: dict[str, str] = json.loads(done)
    return versions


def _describe(environment: Environment) -> str:
    """Return text that differs when the environment has to be made again."""
    digest = hashlib.sha256()
    if environment.from_checkout:
        sources = [ROOT / "pyproject.toml"]
        sources += [p for name in ("trtdeploy", "profiles") for p in (ROOT / name).rglob("*.*")]
        for path in sorted(p for p in sources if p.is_file() and p.suffix != ".pyc"):
            digest.update(path.as_posix().encode() + b"\0" + path.read_bytes())
    return json.dumps([sys.version, *environment.requirements, digest.hexdigest()])


def _create(target: Path) -> None:
    try:
        _run([sys.executable, "-m", "venv", target])
    except InstallError:
        # Debian's python3 has no ensurepip without python3-venv; its own pip fills the environment.
        _run([sys.executable, "-m", "venv", "--without-pip", target])
        _run([sys.executable, "-m", "pip", "--python", target / "bin/python", "install", "pip"])


def _run(command: Command) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        tail = "\n".join((done.stderr or done.stdout).strip().splitlines()[-8:])
        raise InstallError(f"{' '.join(map(str, command))} failed:\n{tail}")
    return done.stdout
