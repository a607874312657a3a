"""The one sink: data goes to stdout, everything else to stderr."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from trtdeploy.cli.text_width import find_width, fit_text

if TYPE_CHECKING:
    from trtdeploy.core.errors import TrtdeployError
    from trtdeploy.core.steps import ProgressEvent

_NARROWEST_VALUE = 20
_BAR_WIDTH = 16
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
            # Halves of characters, which no stream takes: names of files may be any bytes.
            text = text.encode("utf-8", "backslashreplace").decode()
        else:
            text = _show_controls(text)
        try:
            sys.stdout.write(text.rstrip("\n") + "\n")
            sys.stdout.flush()
        except BrokenPipeError:
            # the reader has gone; keep Python from complaining about it at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    def note(self, text: str) -> None:
        """Print something that is not data."""
        self._close_line()
        sys.stderr.write(_show_controls(text) + "\n")

    def result(self, text: str, payload: dict[str, Any], error: TrtdeployError | None) -> None:
        """Print a result; where it is not what was asked for, say why and end with that exit code.

        As JSON, both are one document.
        """
        if error is None:
            self.data(text, payload)
            return
        self.data(text, {**payload, "error": _describe_error(error)})
        self._explain(error)
        import typer  # which errors at start-up do without

        raise typer.Exit(error.exit_code)

    def error(self, error: TrtdeployError) -> None:
        """Print an expected error and what to do next."""
        if self.format is OutputFormat.JSON:
            self.data("", {"error": _describe_error(error)})
        self._explain(error)

    def _explain(self, error: TrtdeployError) -> None:
        log_tail = getattr(error, "log_tail", "")
        if log_tail:
            self.note("--- end of the compiler's log ---\n" + log_tail + "\n---")
        width = find_width(sys.stderr)
        self.note(fit_text(f"error: {error.message}", width))
        if error.hint:
            self.note(fit_text(f"hint: {error.hint}", width))

    def progress(self, event: ProgressEvent) -> None:
        """Draw progress: one line per step, live on a terminal."""
        if event.finished:
            self._close_line()
            sys.stderr.write(f"  {event.step:<9} {event.elapsed_s:6.1f} s  {event.detail}\n")
            self._last_sign_of_life = time.monotonic()
        elif sys.stderr.isatty():
            text = f"  {event.step:<9} {event.elapsed_s:6.1f} s  {_describe(event)}"
            sys.stderr.write("\r\x1b[K" + text[:79])
            self._line_open = True
        elif time.monotonic() - self._last_sign_of_life > _SILENCE_S:
            self._last_sign_of_life = time.monotonic()
            sys.stderr.write(f"  {event.step:<9} {event.elapsed_s:6.1f} s  {_describe(event)}\n")
        sys.stderr.flush()

    def _close_line(self) -> None:
        if self._line_open:
            sys.stderr.write("\r\x1b[K")
            self._line_open = False


def _describe_error(error: TrtdeployError) -> dict[str, Any]:
    return {
        "kind": type(error).__name__,
        "message": error.message,
        "hint": error.hint,
        "exit_code": error.exit_code,
        "log_tail": getattr(error, "log_tail", ""),
    }


def _show_controls(text: str) -> str:
    """Names come from files: an escape sequence in one must not reach the terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)


def _describe(event: ProgressEvent) -> str:
    detail = event.detail or "..."
    if event.fraction is not None:
        done = round(_BAR_WIDTH * min(max(event.fraction, 0.0), 1.0))
        detail = f"[{'#' * done}{'.' * (_BAR_WIDTH - done)}] {detail}"
    if event.estimate_s is not None:
        detail += f" (about {event.estimate_s:.0f} s last time)"
    return detail


sink = OutputSink()
"""The sink of this process; ``--output`` sets its format."""


def format_rows(rows: list[tuple[str, object]]) -> str:
    """Return two aligned columns; rows whose value is None or empty are left out."""
    shown = [(name, str(value)) for name, value in rows if value not in (None, "", [], {})]
    width = max((len(name) for name, _ in shown), default=0)
    columns = find_width(sys.stdout)
    room = None if columns is None else max(columns - width - 2, _NARROWEST_VALUE)
    indent = "\n" + " " * (width + 2)
    return "\n".join(
        f"{name:<{width}}  {fit_text(value, room)}".replace("\n", indent) for name, value in shown
    )


def format_table(rows: Sequence[tuple[str, ...]]) -> str:
    """Return aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
