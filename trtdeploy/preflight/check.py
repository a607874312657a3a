"""The shape of one check."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from trtdeploy.preflight.context import CheckContext
from trtdeploy.preflight.finding import Finding


class PreflightCheck(Protocol):
    """Looks for one kind of problem. A check reads the context and changes nothing."""

    def find(self, context: CheckContext) -> Iterator[Finding]:
        """Yield what is wrong, in graph order."""
        ...
