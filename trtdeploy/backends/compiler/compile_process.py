"""Running the compiler in a child process, and turning every way it can end into one error."""

from __future__ import annotations

import os
import re
import signal
import tempfile
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from trtdeploy.backends.compiler.compile_request import CompileRequest, CompileResult
from trtdeploy.backends.compiler.parser_answer import ParserAnswer
from trtdeploy.backends.compiler.worker_process import Progress, WorkerRun, run_worker
from trtdeploy.core import errors
from trtdeploy.core.errors import CompileError, TrtdeployError

_RESULT: Final = TypeAdapter(CompileResult)
_ANSWER: Final = TypeAdapter(ParserAnswer)
_TAIL_LINES = 12
_TAIL_BYTES = 64 * 1024
_TRACEBACK = "Traceback (most recent call last)"
_OPSET = re.compile(r"Opset version:\s*(\d+)")
"""The parser itself logs the model's opset."""


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
        raise _explain_failure(run, log_path)
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
            error = _explain_failure(run, log_path)
            if not isinstance(error, CompileError):
                raise error
            return ParserAnswer(request.spec.module, frozenset(), (), crashed=str(error))
    return _ANSWER.validate_python(run.event["answer"])


def _explain_failure(run: WorkerRun, log_path: Path) -> TrtdeployError:
    """Return the error for a run that ended without a result."""
    text = _read_log_end(log_path, run.log_start)
    tail = _cut_tail(text)
    if run.timed_out_s is not None:
        return CompileError(
            f"the compiler did not finish within {run.timed_out_s:g} s (phase: {run.phase})",
            hint="Raise build.timeout_s, or lower build.optimization_level.",
            log_tail=tail,
        )
    event = run.event or {"event": ""}
    if event["event"] == "parse_failed":
        return _explain_parse(event["errors"], text)
    if event["event"] == "failed":
        kind: type[TrtdeployError] = getattr(errors, event["kind"])
        if kind is CompileError:
            return CompileError(event["message"], hint=event["hint"], log_tail=tail)
        return kind(event["message"], hint=event["hint"])
    if event["event"] == "raised":
        return CompileError(
            f"the compiler failed in phase {run.phase!r}: {event['error']}",
            hint="Its traceback is at the end of build.log. Please report this as a bug.",
            log_tail=_cut_tail(text.rpartition(_TRACEBACK)[0] or text),
        )
    return CompileError(
        f"the compiler process died in phase {run.phase!r} ({_name_status(run.status)})",
        hint="This is a defect of the compiler or too little memory; the end of its log is above. "
        "Try another recipe, or keep the node that the log names in FP32 (--pin).",
        log_tail=tail,
    )


def _name_status(status: int | None) -> str:
    if status is None:
        return "it closed its event channel and hung"
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"signal {signal.Signals(-status).name}"
    except ValueError:
        return f"signal {-status}"


def _explain_parse(found: list[dict[str, str]], text: str) -> CompileError:
    opset = _OPSET.findall(text)[-1:]
    rows = []
    for entry in found:
        place = f"node {entry['node']!r}" if entry["node"] else "the graph"
        details = [f"op {entry['op_type']}"] if entry["op_type"] else []
        details += [f"opset {version}" for version in opset]
        where = f"{place} ({', '.join(details)})" if details else place
        rows.append(f"{where}: {entry['message']} [{entry['code']}]")
    return CompileError(
        "the ONNX parser of TensorRT refuses the model: "
        + ("; ".join(dict.fromkeys(rows)) or "no reason given"),
        hint="Run 'trtdeploy check' on the model: it lists every blocker with a remedy.",
        log_tail=_cut_tail(text),
    )


def _read_log_end(path: Path, start: int) -> str:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(start, size - _TAIL_BYTES))
        return file.read().decode("utf-8", errors="replace")


def _cut_tail(text: str) -> str:
    """Return the last lines, without empty ones and control characters."""
    kept = [line.rstrip() for line in text.splitlines() if line.strip()]
    return "\n".join("".join(c for c in line if c.isprintable()) for line in kept[-_TAIL_LINES:])
