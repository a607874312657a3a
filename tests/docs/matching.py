"""Shown output against printed output: figures of the day may differ, nothing else."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

_UNITS = r"(?:s|ms|us|min|h|B|kB|MB|GB|KiB|MiB|GiB|TiB|dB|%)"
_FIGURES = (
    re.compile(r"\b[0-9a-f]{10,64}\b"),  # a hash
    re.compile(r"\b\d+\.\d+(?:\.\d+)+\S*"),  # a version
    re.compile(r"[-+]?\b\d+\.\d+(?:e[-+]?\d+)?\b|\b\d+e[-+]?\d+\b"),
    re.compile(rf"\b\d+(?= ?{_UNITS}(?![\w]))"),
)
_ANYTHING = "..."


def explain_mismatch(shown: Sequence[str], printed: str) -> str:
    """Return "" where ``printed`` is what a page shows, else the difference as a diff.

    ``...`` stands for anything, lines included. Times, sizes, fractions, versions and hashes may
    have other digits; white space may differ, since other digits wrap lines elsewhere.
    """
    parts = [re.escape(normalize(part)) for part in "\n".join(shown).split(_ANYTHING)]
    pattern = r"\s*" + r".*?".join(parts).strip() + r"\s*"
    if re.fullmatch(pattern, normalize(printed), re.DOTALL):
        return ""
    return _diff(list(shown), printed.splitlines())


def normalize(text: str) -> str:
    """Return ``text`` with one space for any white space and no digits of the day."""
    for figure in _FIGURES:
        text = figure.sub("#", text)
    return re.sub(r"\s+", " ", text)


def _diff(shown: list[str], printed: list[str]) -> str:
    return "\n".join(difflib.unified_diff(shown, printed, "shown", "printed", lineterm="", n=9))
