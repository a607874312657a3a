"""Lists that a page can show: the first entries, and how many were left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Entry = TypeVar("Entry")


@dataclass(frozen=True)
class Listing(Generic[Entry]):
    """What is shown of a list.

    Attributes:
        shown: The first entries.
        hidden: How many more ``report.json`` has.
    """

    shown: tuple[Entry, ...]
    hidden: int


def limit_entries(entries: Sequence[Entry], most: int) -> Listing[Entry]:
    """Return at most ``most`` entries."""
    return Listing(tuple(entries[:most]), max(0, len(entries) - most))
