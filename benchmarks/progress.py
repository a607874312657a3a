"""Progress for people: stderr, so that stdout holds nothing but the result."""

from __future__ import annotations

import sys


def report_progress(line: str) -> None:
    """Show one line of progress."""
    print(line, file=sys.stderr, flush=True)
