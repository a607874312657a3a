"""Every error trtdeploy raises on purpose, with the exit code and the next step it carries.

Anything else that escapes is a bug in trtdeploy and keeps its traceback.
"""

from __future__ import annotations

from typing import ClassVar


class TrtdeployError(Exception):
    """Base of all expected errors.

    Args:
        message: What is wrong: names the thing, its place and what was expected.
        hint: What to type or change next; empty when the message already says it.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class CheckFailedError(TrtdeployError):
    """A check ran and its answer is no (blockers found, parity outside tolerance)."""

    exit_code = 1


class UsageError(TrtdeployError):
    """The command line or an argument of the Python API makes no sense."""

    exit_code = 2


class InputError(TrtdeployError):
    """A file given by the user cannot be used."""

    exit_code = 3


class ModelFileError(InputError):
    """An ONNX file or its external data cannot be read or is not valid."""


class DeployProfileError(InputError):
    """A profile or device file is wrong, or its values contradict each other."""


class OptimizationProfileError(InputError):
    """Shapes or shape values of an optimization profile do not fit the model."""


class EngineFileError(InputError):
    """An engine file is damaged, is no engine, or is not the one its manifest describes."""


class FeedError(InputError):
    """What a session is fed does not fit the inputs of its model; nothing was cast or run."""


class MissingDependencyError(TrtdeployError):
    """An optional package is needed and not installed."""

    exit_code = 4


class NotPossibleError(TrtdeployError):
    """The request is sound but this machine or this device cannot carry it out."""

    exit_code = 5


class EngineMismatchError(NotPossibleError):
    """An engine was made for another TensorRT, GPU or platform than this machine has."""


class ExecutionError(TrtdeployError):
    """A runtime or the GPU failed while it loaded or ran an engine that looked right."""

    exit_code = 6


class CompileError(TrtdeployError):
    """The engine compiler refused the model, crashed, or ran out of time.

    Args:
        message: What the compiler said, in one paragraph.
        hint: What to try next.
        log_tail: The last lines of the compiler's own log.
    """

    exit_code = 6

    def __init__(self, message: str, *, hint: str = "", log_tail: str = "") -> None:
        super().__init__(message, hint=hint)
        self.log_tail = log_tail
