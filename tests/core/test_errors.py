from __future__ import annotations

import inspect

import pytest

from trtdeploy.core import errors
from trtdeploy.core.errors import CompileError, TrtdeployError

ERRORS = [
    found
    for _, found in inspect.getmembers(errors, inspect.isclass)
    if issubclass(found, TrtdeployError)
]
EXIT_CODES = {
    "TrtdeployError": 1,
    "CheckFailedError": 1,
    "UsageError": 2,
    "InputError": 3,
    "ModelFileError": 3,
    "DeployProfileError": 3,
    "OptimizationProfileError": 3,
    "EngineFileError": 3,
    "FeedError": 3,
    "MissingDependencyError": 4,
    "NotPossibleError": 5,
    "EngineMismatchError": 5,
    "ExecutionError": 6,
    "CompileError": 6,
}


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: e.__name__)
def test_every_error_has_a_message_a_hint_and_its_exit_code(error: type[TrtdeployError]) -> None:
    raised = error("what is wrong", hint="what to type")
    assert str(raised) == raised.message == "what is wrong"
    assert raised.hint == "what to type"
    assert error("no hint").hint == ""
    assert error.exit_code == EXIT_CODES[error.__name__]
    assert error.__name__.endswith("Error")
    assert error.__doc__


def test_the_table_lists_every_error() -> None:
    assert {error.__name__ for error in ERRORS} == set(EXIT_CODES)


def test_a_compile_error_keeps_the_end_of_the_log() -> None:
    assert CompileError("stopped", log_tail="last line").log_tail == "last line"
    assert CompileError("stopped").log_tail == ""
