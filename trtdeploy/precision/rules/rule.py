"""The shape of a precision rule."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from trtdeploy.precision.context import RuleContext

Kept = tuple[str, str]
"""Node name and reason."""


class PrecisionRule(Protocol):
    """Finds nodes that must stay FP32."""

    def find(self, context: RuleContext) -> Iterator[Kept]:
        """Yield each node to keep with the reason."""
        ...
