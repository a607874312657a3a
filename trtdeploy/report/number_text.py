"""Figures as people read them; a rounded text never looks better than its figure."""

from __future__ import annotations

import math
from collections.abc import Iterable

NOT_THERE = "\N{EN DASH}"
TIMES = "\N{MULTIPLICATION SIGN}"
"""Between sizes on a page; text that may be typed again has an ``x``."""
_PLAIN_FROM, _PLAIN_BELOW = 1e-2, 1e4
_NEARLY_ONE = 0.99
_NEARLY_ALL = 0.999
_MINUTE_S = 60.0


def format_figure(value: float | None) -> str:
    """Return three significant digits, e.g. ``0.0125``, ``1.2e-5``, ``inf``; a dash for None."""
    if value is None:
        return NOT_THERE
    if not math.isfinite(value) or value == 0:
        return f"{value:.0f}"
    if _PLAIN_FROM <= abs(value) < _PLAIN_BELOW:
        return f"{value:.3g}"
    mantissa, _, exponent = f"{value:.1e}".partition("e")
    return f"{mantissa}e{int(exponent)}"


def format_share(value: float | None) -> str:
    """Return a share in percent; close to one it is rounded down: 0.99999 is not ``100 %``."""
    if value is None:
        return NOT_THERE
    if not math.isfinite(value):
        return format_figure(value)
    if _NEARLY_ALL <= value < 1:
        return f"{math.floor(value * 100_000) / 1000:g} %"
    return f"{100 * value:.3g} %"


def format_cosine(value: float | None) -> str:
    """Return a cosine; close to one it is the distance from one that tells something."""
    if value is None or not _NEARLY_ONE < value < 1:
        return format_figure(value)
    return f"1 \N{MINUS SIGN} {1 - value:.1e}".replace("e-0", "e-")


def format_seconds(value: float) -> str:
    """Return ``0.087 s``, ``12.3 s``, ``4 min 10 s``."""
    if value < _MINUTE_S:
        return f"{value:.3g} s"
    minutes, rest = divmod(round(value), _MINUTE_S)
    return f"{minutes:.0f} min {rest:.0f} s"


def format_count(value: int) -> str:
    """Return a whole number in groups of three: ``12 345``."""
    return f"{value:,}".replace(",", "\u202f")


def format_compact(value: int) -> str:
    """Return a count in at most four characters: ``950``, ``1.2k``, ``34M``."""
    size = float(value)
    for unit in ("", "k", "M", "G", "T", "P"):
        if size < 999.5:  # noqa: PLR2004 - 999.5 rounds to four digits
            digits = f"{size:.0f}" if not unit or size >= 9.95 else f"{size:.1f}"  # noqa: PLR2004
            return f"{digits}{unit}"
        size /= 1000
    return f"{size:.0f}E"


def format_sizes(sizes: Iterable[int | str] | None, times: str = "x") -> str:
    """Return ``1x3x640x640``, ``scalar`` for rank 0, ``unknown rank`` for None."""
    return "unknown rank" if sizes is None else times.join(map(str, sizes)) or "scalar"


def count_noun(count: int, noun: str) -> str:
    """Return ``1 point``, ``3 points``."""
    return f"{format_count(count)} {noun}{'' if count == 1 else 's'}"


def shorten(text: str, limit: int) -> str:
    """Return ``text`` on one line, its middle left out where it is longer than ``limit``."""
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    tail = (limit - 1) // 3
    return f"{line[: limit - 1 - tail]}…{line[len(line) - tail :]}"
