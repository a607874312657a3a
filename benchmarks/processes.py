"""Running a program in a process of its own and measuring it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

Command = Sequence[str | Path]
"""A program and its arguments."""

_LAUNCHER = Path(__file__).with_name("launcher.py")
_TAIL_LINES = 15


@dataclass(frozen=True)
class Measurement:
    """What one run of a program cost.

    Attributes:
        exit_status: As the shell counts it; negative is the signal that ended the program.
        wall_s: From before its start to after its end.
        cpu_s: User and system time, children included.
        peak_bytes: Largest resident set of the program or of one of its children, not their sum.
        log_tail: Last lines that it printed.
    """

    exit_status: int
    wall_s: float
    cpu_s: float
    peak_bytes: int
    log_tail: str

    @property
    def failed(self) -> bool:
        """True when the program did not end with status 0."""
        return self.exit_status != 0

    @property
    def reason(self) -> str:
        """The line that says what went wrong: the last "error:", else the last of all."""
        lines = self.log_tail.splitlines()
        errors = [line for line in lines if line.startswith("error:")]
        how = f"exit status {self.exit_status}"
        return f"{how}: {(errors or lines)[-1].strip()}" if lines else how


class ProcessTimeoutError(Exception):
    """A program ran longer than it was given."""


def measure_process(
    command: Command,
    *,
    folder: Path | None = None,
    variables: Mapping[str, str] | None = None,
    timeout_s: float = 1800,
) -> Measurement:
    """Run ``command`` and measure it from outside.

    Args:
        command: Program and arguments; the program is looked up like a shell does.
        folder: Where it runs; None is the current folder.
        variables: Added to the environment.
        timeout_s: After which it is killed, children included.

    Raises:
        FileNotFoundError: There is no such program.
        ProcessTimeoutError: It took too long.
    """
    program = shutil.which(str(command[0]))
    if program is None:
        raise FileNotFoundError(f"there is no program {command[0]}")
    arguments = [program, *map(str, command[1:])]
    with tempfile.TemporaryDirectory(prefix="trtdeploy-benchmark-") as temporary:
        result, log = Path(temporary) / "result.json", Path(temporary) / "log"
        launcher = subprocess.Popen(
            [sys.executable, "-I", "-S", _LAUNCHER, result, log, *arguments],
            cwd=folder,
            env={**os.environ, **(variables or {})},
            start_new_session=True,  # a group of its own, which can be killed as a whole
        )
        try:
            status = launcher.wait(timeout_s)
        except subprocess.TimeoutExpired as error:
            raise ProcessTimeoutError(f"{program} ran longer than {timeout_s:g} s") from error
        finally:
            if launcher.poll() is None:
                os.killpg(launcher.pid, signal.SIGKILL)
                launcher.wait()
        if status:
            raise OSError(f"the launcher could not run {program} (exit status {status})")
        figures = json.loads(result.read_text(encoding="utf-8"))
        return Measurement(**figures, log_tail=_read_tail(log))


def _read_tail(path: Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join([line for line in lines if line.strip()][-_TAIL_LINES:])
