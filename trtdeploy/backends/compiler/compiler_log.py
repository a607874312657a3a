"""What the compiler says while it works: log lines and progress phases."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Protocol

_KEPT_ERRORS = 5


class LogSink(Protocol):
    """Takes the lines of a TensorRT logger, from whatever thread."""

    def add(self, severity: str, message: str) -> None:
        """Record one line; ``severity`` is the name of a member of ``ILogger.Severity``."""
        ...


class CompilerLog:
    """Log lines by severity; every line is also written to stderr, which is build.log."""

    def __init__(self) -> None:
        self._errors: list[str] = []
        self._warnings: dict[str, None] = {}

    def add(self, severity: str, message: str) -> None:
        """Record one line."""
        if severity in ("ERROR", "INTERNAL_ERROR"):
            self._errors.append(message.strip())
        elif severity == "WARNING":
            self._warnings[message.strip()] = None
        if severity != "VERBOSE":
            sys.stderr.write(f"[{severity}] {message}\n")
            sys.stderr.flush()  # a crash must not eat the last words

    def last_errors(self) -> str:
        """Return the last distinct errors as one text."""
        return " | ".join(dict.fromkeys(self._errors[-_KEPT_ERRORS:]))

    def warnings(self) -> tuple[str, ...]:
        """Return distinct warnings in order."""
        return tuple(self._warnings)


def make_logger(trt: Any, log: LogSink) -> Any:
    """Return a TensorRT logger that writes to ``log``."""

    class Logger(trt.ILogger):  # type: ignore[misc]
        def __init__(self) -> None:
            trt.ILogger.__init__(self)

        def log(self, severity: Any, message: str) -> None:
            log.add(severity.name, message)

    return Logger()


def make_progress_monitor(trt: Any, report: Callable[[str], None]) -> Any:
    """Return a monitor that reports each phase as it starts; None where TensorRT has none."""
    if not hasattr(trt, "IProgressMonitor"):
        return None

    class Monitor(trt.IProgressMonitor):  # type: ignore[misc]
        def __init__(self) -> None:
            trt.IProgressMonitor.__init__(self)

        def phase_start(self, phase: str, parent: str | None, steps: int) -> None:
            report(f"build: {phase}")

        def step_complete(self, phase: str, step: int) -> bool:
            return True

        def phase_finish(self, phase: str) -> None:
            """Nothing to do: the next phase_start says it."""

    return Monitor()
