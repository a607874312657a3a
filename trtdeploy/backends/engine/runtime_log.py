"""What TensorRT says while it loads and runs engines."""

from __future__ import annotations

import logging
from collections import deque

_LEVELS = {
    "INTERNAL_ERROR": logging.ERROR,
    "ERROR": logging.ERROR,
    "WARNING": logging.WARNING,
    "INFO": logging.DEBUG,
    "VERBOSE": logging.DEBUG,
}
_KEPT_ERRORS = 5

logger = logging.getLogger("trtdeploy.tensorrt")
"""The application decides what becomes of it; trtdeploy configures no logging."""


class RuntimeLog:
    """Hands lines to ``logging`` and keeps the last errors for our own."""

    def __init__(self) -> None:
        self._errors: deque[str] = deque(maxlen=_KEPT_ERRORS)

    def add(self, severity: str, message: str) -> None:
        """Record one line."""
        level = _LEVELS.get(severity, logging.DEBUG)
        if level == logging.ERROR:
            self._errors.append(message.strip())
        logger.log(level, "%s", message)

    def take_errors(self) -> str:
        """Return the last distinct errors as one text, and forget them."""
        text = " | ".join(dict.fromkeys(self._errors))
        self._errors.clear()
        return text or "it gives no reason"
