"""Starting the compiler process, following its events, and ending it whatever happens."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trtdeploy.backends.compiler.compile_request import CompileRequest
from trtdeploy.core.child_python import build_python_command

Progress = Callable[[str, float], None]
"""Called with the phase and the seconds since the start, about four times a second."""

_TICK_S = 0.25
_END_S = 10.0
_BOOT = "from trtdeploy.backends.compiler.compile_worker import run; run()"


@dataclass
class WorkerRun:
    """What is known of a run of the compiler process.

    Attributes:
        phase: The last phase it reported.
        event: The event that ended it; None when it ended without one.
        status: Exit status, or minus the signal that ended it; None when we ended it.
        timed_out_s: Seconds after which it was ended for taking too long; None when it was not.
        log_start: Where in the log file its output begins.
    """

    phase: str = "start"
    event: dict[str, Any] | None = None
    status: int | None = None
    timed_out_s: float | None = None
    log_start: int = 0


def run_worker(
    request: CompileRequest,
    log_path: Path,
    *,
    timeout_s: float | None = None,
    progress: Progress | None = None,
) -> WorkerRun:
    """Run the compiler process to its end; it never outlives this call, nor this process.

    Args:
        request: What it is asked.
        log_path: Where its output goes; created, or appended to.
        timeout_s: Seconds after which it is ended; None waits for ever.
        progress: Called regularly while it works.
    """
    started = time.monotonic()
    run = WorkerRun(log_start=log_path.stat().st_size if log_path.exists() else 0)
    with _start(request, log_path) as (process, events):
        for event in _read_events(events):
            if event is not None and event["event"] == "phase":
                run.phase = event["phase"]
            elif event is not None:
                run.event = event
                return run
            elapsed_s = time.monotonic() - started
            if progress is not None:
                progress(run.phase, elapsed_s)
            if timeout_s is not None and elapsed_s > timeout_s:
                run.timed_out_s = timeout_s
                return run
        with suppress(subprocess.TimeoutExpired):
            run.status = process.wait(_END_S)
    return run


@contextmanager
def _start(
    request: CompileRequest, log_path: Path
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Start the worker in a session of its own, and kill that session when the block ends."""
    events, sink = os.pipe()
    try:
        with log_path.open("ab") as log, tempfile.TemporaryFile() as asked:
            asked.write(request.to_json().encode())
            asked.seek(0)
            process = subprocess.Popen(
                [*build_python_command(_BOOT), str(sink), str(os.getpid())],
                stdin=asked,
                stdout=log,
                stderr=log,
                pass_fds=(sink,),
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": _join_import_path()},
            )
        os.close(sink)
        sink = -1
        try:
            yield process, events
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):  # stuck in a driver
                process.wait(_END_S)
    finally:
        os.close(events)
        if sink >= 0:
            os.close(sink)


def _join_import_path() -> str:
    """The child imports what this process would import, also when nothing is installed."""
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    paths = [*filter(None, inherited), *(path or str(Path.cwd()) for path in sys.path)]
    return os.pathsep.join(dict.fromkeys(paths))


def _read_events(events: int) -> Iterator[dict[str, Any] | None]:
    """Yield events as they come, and None at least every tick, until the pipe closes."""
    held = b""
    with selectors.DefaultSelector() as selector:
        selector.register(events, selectors.EVENT_READ)
        while True:
            if selector.select(_TICK_S):
                chunk = os.read(events, 1 << 16)
                if not chunk:
                    return
                *lines, held = (held + chunk).split(b"\n")
                yield from map(json.loads, lines)
            else:
                yield None
