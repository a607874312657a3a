"""Running the compiler in a child process, and turning every way it can end into one error."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from trtdeploy.backends.compile_failure import explain_failure
from trtdeploy.backends.parser_answer import ParserAnswer, ParserError
from trtdeploy.backends.request import CompileRequest, CompileResult
from trtdeploy.backends.worker_process import Progress, run_worker
from trtdeploy.core.errors import CompileError


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
    result = run.event["result"]
    for key in ("flags", "warnings"):
        result[key] = tuple(result[key])
    result["engine_path"] = Path(result["engine_path"])
    return CompileResult(**result)


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
            return ParserAnswer(request.module, frozenset(), (), crashed=str(error))
    answer = run.event["answer"]
    return ParserAnswer(
        parser=answer["parser"],
        unsupported_operators=frozenset(answer["unsupported_operators"]),
        errors=tuple(ParserError(**entry) for entry in answer["errors"]),
    )


def describe_request(request: CompileRequest) -> dict[str, Any]:
    """Return a request as the manifest stores it, without machine paths."""
    data = asdict(request)
    for key in ("model_path", "engine_path", "timing_cache_path", "parse_only"):
        del data[key]
    return data
