"""Why the compiler process did not deliver, in words a user can act on."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

from trtdeploy.backends.compiler.worker_process import WorkerRun
from trtdeploy.core import errors
from trtdeploy.core.errors import CompileError, TrtdeployError

_TAIL_LINES = 12
_TAIL_BYTES = 64 * 1024
_TRACEBACK = "Traceback (most recent call last)"
_OPSET = re.compile(r"Opset version:\s*(\d+)")
"""The parser itself logs the model's opset."""


def explain_failure(run: WorkerRun, log_path: Path) -> TrtdeployError:
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
