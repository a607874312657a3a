"""Suggestions for mistyped names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def suggest_name(given: str, valid: Iterable[str], *, limit: int = 12) -> str:
    """Return a sentence that names the closest valid spelling, or lists what exists."""
    names = sorted(set(valid))
    close = difflib.get_close_matches(given, names, n=1, cutoff=0.6)
    if close:
        return f"Did you mean {close[0]!r}?"
    if not names:
        return "There is nothing to choose from."
    shown = ", ".join(repr(name) for name in names[:limit])
    rest = f" and {len(names) - limit} more" if len(names) > limit else ""
    return f"Valid: {shown}{rest}."
