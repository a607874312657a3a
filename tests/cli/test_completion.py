"""Bare ``trtdeploy`` and the TAB key, asked the way each shell asks: a process of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_PROGRAM = "import sys; sys.argv[0] = 'trtdeploy'; from trtdeploy.cli.main import main; main()"
TYPED = {
    "command": ("trtdeploy bu", {"build"}),
    "option": ("trtdeploy build --prof", {"--profile"}),
    "profile": ("trtdeploy build net.onnx -p orin-f", {"orin-fp16"}),
    "format": ("trtdeploy parity --output j", {"json"}),
    "command of models": ("trtdeploy models f", {"fetch"}),
}


def start(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _PROGRAM, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
    )


def test_bare_command_shows_the_help() -> None:
    done = start()
    assert done.returncode == 2  # Typer's: nothing was done
    assert "Usage: trtdeploy [OPTIONS] COMMAND" in done.stderr
    assert "Traceback" not in done.stderr


def ask(shell: str, line: str) -> subprocess.CompletedProcess[str]:
    """Complete the last word of a line as the script of that shell does."""
    variables = {"_TRTDEPLOY_COMPLETE": f"complete_{shell}"}
    if shell == "bash":
        return start(COMP_WORDS=line, COMP_CWORD=str(len(line.split()) - 1), **variables)
    if shell == "fish":
        variables["_TYPER_COMPLETE_FISH_ACTION"] = "get-args"
    return start(_TYPER_COMPLETE_ARGS=line, **variables)


def read_words(shell: str, shown: str) -> set[str]:
    if shell == "zsh":
        return {part.split('"')[0] for part in shown.split('("')[1:]}
    return {line.split("\t")[0] for line in shown.splitlines()}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(("line", "expected"), TYPED.values(), ids=TYPED)
def test_every_shell_completes(shell: str, line: str, expected: set[str]) -> None:
    done = ask(shell, line)
    assert (done.returncode, done.stderr) == (0, "")
    assert read_words(shell, done.stdout) == expected


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_by_the_script_that_is_shown(tmp_path: Path) -> None:
    program = tmp_path / "trtdeploy"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{_PROGRAM}" "$@"\n')
    program.chmod(0o755)
    script = (
        'eval "$(trtdeploy --show-completion bash)"; COMP_WORDS=(trtdeploy in); COMP_CWORD=1; '
        '_trtdeploy_completion trtdeploy; echo "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        },
    )
    assert (done.stdout, done.stderr) == ("inspect\n", "")
