"""Lines that fit the terminal, with commands left whole: a broken one cannot be copied."""

from __future__ import annotations

import os
import re
import textwrap
from typing import TextIO

_SMALLEST_WIDTH = 40
_COMMAND = re.compile(r"'(?:trtdeploy|pip) [^'\n]*'|(?<=: )(?:trtdeploy|pip) .*?(?=   |$)", re.M)
"""As hints spell commands: in quotes, or after a colon up to three spaces or the line's end."""
_KEPT_SPACE = "\0"


def find_width(stream: TextIO) -> int | None:
    """Return the columns of a stream: ``COLUMNS``, else its terminal's; None for files and pipes.

    What is not shown to people is not wrapped: logs are searched line by line.
    """
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given) > 0:
        return max(int(given), _SMALLEST_WIDTH)
    if not stream.isatty():
        return None
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return None
    return max(columns, _SMALLEST_WIDTH) if columns else None


def fit_text(text: str, width: int | None, indent: str = "  ") -> str:
    """Return ``text`` with long lines wrapped; words and commands are never broken.

    Args:
        text: Any number of lines.
        width: Columns; None leaves the text alone.
        indent: Goes in front of continued lines, after the line's own indent.
    """
    if width is None:
        return text
    kept = _COMMAND.sub(lambda match: match[0].replace(" ", _KEPT_SPACE), text)
    lines = [_fit_line(line, width, indent) for line in kept.split("\n")]
    return "\n".join(lines).replace(_KEPT_SPACE, " ")


def _fit_line(line: str, width: int, indent: str) -> str:
    if len(line) <= width:
        return line
    own = line[: len(line) - len(line.lstrip())]
    return textwrap.fill(
        line.lstrip(),
        width,
        initial_indent=own,
        subsequent_indent=own + indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
