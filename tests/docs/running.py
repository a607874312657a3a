"""Runs the commands of a page in one folder, as a reader would."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.docs.matching import explain_mismatch
from tests.docs.page import Block, Command
from trtdeploy.backends.installed import is_installed
from trtdeploy.cli.main import run

ELSEWHERE = ("the Jetson", "an H100")
PYTORCH = "PyTorch"
NETWORK = "a package index"
NETWORK_VARIABLE = "TRTDEPLOY_DOCS_NETWORK"
_MODULES = {
    PYTORCH: ("torch", "onnxscript"),
    "Ultralytics": ("ultralytics",),
    "timm": ("timm",),
    "torchvision": ("torchvision",),
    "transformers": ("transformers",),
}
_SHELL = frozenset("|><&;$*`")
_TIMEOUT_S = 300


def known_needs() -> set[str]:
    """Return the needs that a page may state."""
    return {*_MODULES, *ELSEWHERE, NETWORK}


def find_lacks(block: Block) -> list[str]:
    """Return what a block needs and this environment has not; empty where it can run."""
    modules = [module for need in block.needs for module in _MODULES.get(need, ())]
    lacks = [f"{module} is not installed" for module in modules if not is_installed(module)]
    if NETWORK in block.needs and not os.environ.get(NETWORK_VARIABLE):
        lacks.append(f"{NETWORK_VARIABLE} is not set")
    return lacks


@dataclass
class PageRun:
    """The state of a page that is being worked through, in its folder."""

    folder: Path
    _code: int = 0

    def follow(self, block: Block) -> None:
        """Write the block's file, or run its commands and compare what they print."""
        if block.file:
            path = self.folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.content, encoding="utf-8")
        for index, command in enumerate(block.commands):
            following = block.commands[index + 1 : index + 2]
            self.run(command, may_fail=any(c.text == "echo $?" for c in following))

    def run(self, command: Command, *, may_fail: bool = False) -> None:
        """Run one command; it must end with 0, unless the page looks at its exit code next."""
        if command.text == "echo $?":
            assert command.shown == (str(self._code),), "the exit code is another"
            return
        self._code, printed = _execute(command.text, self.folder)
        assert may_fail or self._code == 0, f"$ {command.text}\n{printed}"
        if command.shown:
            difference = explain_mismatch(command.shown, printed.replace(str(self.folder), "..."))
            assert not difference, f"$ {command.text}\n{difference}"


def _execute(text: str, folder: Path) -> tuple[int, str]:
    words = shlex.split(text)
    if words[0] != "trtdeploy" or _SHELL & set(text):
        return _execute_in_shell(text, folder)
    with io.StringIO() as out:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = run(words[1:])
        return code, out.getvalue()


def _execute_in_shell(text: str, folder: Path) -> tuple[int, str]:
    paths = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    done = subprocess.run(
        ["bash", "-c", text],
        cwd=folder,
        env={**os.environ, "PATH": paths},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    return done.returncode, done.stdout
