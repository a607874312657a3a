"""Which TensorRT runs an engine of which TensorRT.

Sources: NVIDIA's engine-compatibility and support-matrix pages (11.1.0 and 11.4.1). An ordinary
plan is valid for exactly the version that built it. A version-compatible one also runs on later
versions of its major, and across majors from 8 to 10 and from 10 to 11 only; never on an older one.
TensorRT-RTX has no such plans: exactly its own version.
"""

from __future__ import annotations

import re

_NUMBERS = re.compile(r"\d+(?:\.\d+)*")
_NEXT_MAJOR = {(8, 10), (10, 11)}
_HEADER_BITS = 256
"""Plan headers hold each part of the version in one byte."""


def parse_version(text: str) -> tuple[int, ...]:
    """Return ``(10, 14, 1, 48)`` for ``10.14.1.48.post1``; empty when it begins with no number."""
    found = _NUMBERS.match(text)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def is_same_version(first: str, second: str) -> bool:
    """Compare the parts that both state: Python packages leave the build number out at times."""
    ours, theirs = parse_version(first), parse_version(second)
    common = min(len(ours), len(theirs))
    return common > 0 and ours[:common] == theirs[:common]


def matches_header(version: str, header: str) -> bool:
    """Compare a version with that of a plan header, whose parts are cut to a byte."""
    cut = ".".join(str(part % _HEADER_BITS) for part in parse_version(version))
    return is_same_version(cut, header)


def explain_version_conflict(built: str, running: str, *, version_compatible: bool) -> str | None:
    """Return the rule that forbids it, None when the engine may run.

    Args:
        built: The version that compiled the engine.
        running: The version of this machine.
        version_compatible: It was compiled with the flag VERSION_COMPATIBLE.
    """
    if is_same_version(built, running):
        return None
    if not version_compatible:
        return "an engine runs on exactly the version that compiled it"
    old, new = parse_version(built), parse_version(running)
    if not old or not new or new < old:
        return "a version-compatible engine runs on later versions only"
    if old[0] != new[0] and (old[0], new[0]) not in _NEXT_MAJOR:
        return "a version-compatible engine crosses majors from 8 to 10 and from 10 to 11 only"
    return None
