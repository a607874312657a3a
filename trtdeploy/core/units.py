"""Byte sizes as people write them."""

from __future__ import annotations

import re

_UNITS = {"": 1, "B": 1, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40,
          "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}  # fmt: skip
_STEP, _FOUR_DIGITS = 1024, 1000
_SIZE = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*$")


def parse_bytes(text: str | int) -> int:
    """Return the number of bytes in ``"1GiB"``, ``"512 MiB"``, ``"2GB"`` or a plain integer.

    Raises:
        ValueError: Not a size, or a unit that does not exist.
    """
    if isinstance(text, int) and not isinstance(text, bool):
        return text
    match = _SIZE.match(str(text))
    factor = _UNITS.get(match.group(2).upper()) if match else None
    if match is None or factor is None:
        raise ValueError(f"{text!r} is not a byte size; write it like 512MiB, 1GiB or 2GB")
    return int(float(match.group(1)) * factor)


def format_bytes(count: int) -> str:
    """Return a size with three significant digits in binary units, e.g. ``9.83 MiB``."""
    size, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if abs(size) < _STEP:
            break
        size, unit = size / _STEP, larger
    digits = ".3g" if abs(size) < _FOUR_DIGITS and unit != "B" else ".0f"
    return f"{size:{digits}} {unit}"
