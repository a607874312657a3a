"""Running the compiler in a child process, and turning every way it can end into one error."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from trtdeploy.backends.compiler.compile_failure import explain_failure
from trtdeploy.backends.compiler.compile_request import CompileRequest, CompileResult
from trtdeploy.backends.compiler.parser_answer import ParserAnswer
from trtdeploy.backends.compiler.worker_process import Progress, run_worker
from trtdeploy.core.errors import CompileError

_RESULT: Final = TypeAdapter(CompileResult)
_ANSWER: Final = TypeAdapter(ParserAnswer)


def compile_engine(
    request: CompileRequest,
    log_path: Path,
    *,
    timeout_s: float | None = None,
    progress: Progress | None = None,
) -> CompileResult:
    """Compile in a child process.

    Args:
        request: What to build.
        log_path: The compiler's log; created, or appended to.
        timeout_s: Seconds after which the compiler is ended; None waits for ever.
        progress: Called regularly while the compiler works.

    Raises:
        CompileError: The parser or builder refused, the process crashed, or time ran out.
        TrtdeployError: Whatever else the compiler process found, with its own exit code.
    """
    run = run_worker(request, log_path, timeout_s=timeout_s, progress=progress)
    if run.event is None or run.event["event"] != "done":
        raise explain_failure(run, log_path)
    return _RESULT.validate_python(run.event["result"])


def ask_installed_parser(request: CompileRequest, *, timeout_s: float = 120) -> ParserAnswer:
    """Ask the parser in a child process; a crash of the parser is an answer too.

    Raises:
        MissingDependencyError: The module is not installed, or its libraries are not.
        NotPossibleError: It does not start here; TensorRT itself needs a GPU even to parse.
    """
    with tempfile.TemporaryDirectory() as folder:
        log_path = Path(folder) / "parser.log"
        run = run_worker(request, log_path, timeout_s=timeout_s)
        if run.event is None or run.event["event"] != "answer":
            error = explain_failure(run, log_path)
            if not isinstance(error, CompileError):
                raise error
            return ParserAnswer(request.spec.module, frozenset(), (), crashed=str(error))
    return _ANSWER.validate_python(run.event["answer"])
