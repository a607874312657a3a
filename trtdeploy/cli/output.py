"""The one sink: data goes to stdout, everything else to stderr."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trtdeploy.core.errors import TrtdeployError
    from trtdeploy.pipeline.progress import ProgressEvent

_SILENCE_S = 20.0
"""Without a terminal, say at least this often that a step is still at work."""


class OutputFormat(str, Enum):
    """How results are printed."""

    HUMAN = "human"
    JSON = "json"


@dataclass
class OutputSink:
    """Prints results, progress and errors in one of two formats."""

    format: OutputFormat = OutputFormat.HUMAN
    _line_open: bool = False
    _last_sign_of_life: float = field(default_factory=time.monotonic)

    def data(self, text: str, payload: Any) -> None:
        """Print a result: ``text`` for people, or ``payload`` as JSON."""
        if self.format is OutputFormat.JSON:
            text = json.dumps(payload, indent=2, ensure_ascii=False, default=str)
        sys.stdout.write(text.rstrip("\n") + "\n")
        sys.stdout.flush()

    def note(self, text: str) -> None:
        """Print something that is not data."""
        self._close_line()
        sys.stderr.write(text + "\n")

    def error(self, error: TrtdeployError) -> None:
        """Print an expected error and what to do next."""
        log_tail = getattr(error, "log_tail", "")
        if self.format is OutputFormat.JSON:
            description = {
                "kind": type(error).__name__,
                "message": error.message,
                "hint": error.hint,
                "exit_code": error.exit_code,
                "log_tail": log_tail,
            }
            self.data("", {"error": description})
        if log_tail:
            self.note("--- end of the compiler's log ---\n" + log_tail + "\n---")
        self.note(f"error: {error.message}")
        if error.hint:
            self.note(f"hint: {error.hint}")

    def progress(self, event: ProgressEvent) -> None:
        """Draw progress: one line per step, live on a terminal."""
        if event.finished:
            self._close_line()
            sys.stderr.write(f"  {event.step:<8} {event.elapsed_s:6.1f} s  {event.detail}\n")
            self._last_sign_of_life = time.monotonic()
        elif sys.stderr.isatty():
            text = f"  {event.step:<8} {event.elapsed_s:6.1f} s  {_describe(event)}"
            sys.stderr.write("\r\x1b[K" + text[:79])
            self._line_open = True
        elif time.monotonic() - self._last_sign_of_life > _SILENCE_S:
            self._last_sign_of_life = time.monotonic()
            sys.stderr.write(f"  {event.step:<8} {event.elapsed_s:6.1f} s  {_describe(event)}\n")
        sys.stderr.flush()

    def _close_line(self) -> None:
        if self._line_open:
            sys.stderr.write("\r\x1b[K")
            self._line_open = False


def _describe(event: ProgressEvent) -> str:
    detail = event.detail or "..."
    if event.estimate_s is not None:
        detail += f" (about {event.estimate_s:.0f} s last time)"
    return detail


sink = OutputSink()
"""The sink of this process; commands set its format first thing."""


def format_rows(rows: list[tuple[str, object]]) -> str:
    """Return two aligned columns; rows whose value is None or empty are left out."""
    shown = [(name, str(value)) for name, value in rows if value not in (None, "", [], {})]
    width = max((len(name) for name, _ in shown), default=0)
    indent = "\n" + " " * (width + 2)
    return "\n".join(f"{name:<{width}}  {value}".replace("\n", indent) for name, value in shown)
