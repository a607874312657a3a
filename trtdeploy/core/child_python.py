"""Python processes that are started here, and what they may import."""

from __future__ import annotations

import sys


def build_python_command(code: str) -> list[str]:
    """Return the command that runs ``code`` in a Python process, arguments to be added.

    Whatever lies in the current folder is data: ``python -c`` and ``python -m`` would import from
    it before anything else. (``-I`` would lose packages of the user, and ``-P`` needs Python 3.11.)

    Args:
        code: One line of statements.
    """
    return [sys.executable, "-c", f"import sys; sys.path[:] = filter(None, sys.path); {code}"]
