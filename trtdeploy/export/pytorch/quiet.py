"""Keeps what frameworks print away from stdout, where results go, and from the user's screen."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
import warnings
from collections.abc import Iterator

_LOGGERS = (
    "torch", "torch.onnx", "torch.export", "torch._dynamo", "torch._export", "torch._functorch",
    "torch.fx.experimental.symbolic_shapes", "torch.fx", "onnxscript", "onnx_ir", "transformers",
    "timm", "ultralytics",
)  # fmt: skip


@contextlib.contextmanager
def quiet_frameworks(*, descriptors: bool = False) -> Iterator[list[warnings.WarningMessage]]:
    """Swallow prints and logs inside the block; yield the warnings that were raised.

    What matters of them comes back as errors and notes.

    Args:
        descriptors: Swallow what native code prints, too.
    """
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        with (
            _quiet_descriptors() if descriptors else contextlib.nullcontext(),
            warnings.catch_warnings(record=True) as caught,
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("always")
            yield caught
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@contextlib.contextmanager
def _quiet_descriptors() -> Iterator[None]:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    saved = [os.dup(number) for number in (1, 2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for number in (1, 2):
            os.dup2(nowhere, number)
        yield
    finally:
        for number, copy in zip((1, 2), saved, strict=True):
            os.dup2(copy, number)
            os.close(copy)
        os.close(nowhere)
