"""One error for everything that is wrong with some files."""

from __future__ import annotations

from collections.abc import Sequence

from trtdeploy.core.errors import InputError

_MOST_LISTED = 12


def raise_problems(problems: Sequence[str], hint: str = "") -> None:
    """Raise one ``InputError`` that lists the problems; return when there are none.

    Raises:
        InputError: There are problems. Past a dozen they are only counted.
    """
    if not problems:
        return
    lines = list(problems[:_MOST_LISTED])
    if len(problems) > _MOST_LISTED:
        lines.append(f"and {len(problems) - _MOST_LISTED} more")
    text = lines[0] if len(lines) == 1 else "\n  ".join([f"{len(problems)} problems:", *lines])
    raise InputError(text, hint=hint)
