"""The compiler process, started by ``worker_process`` and talking to it alone.

Native compilers crash, abort and hang; in a process of their own that ends this process only.
stdin is the request as JSON. The file descriptor named by the first argument takes one JSON object
per line (events). stdout and stderr are build.log, whoever writes to them.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from dataclasses import asdict
from typing import Any, TextIO

from trtdeploy.backends.compiler.compile_request import CompileRequest
from trtdeploy.backends.compiler.engine_builder import build_engine
from trtdeploy.backends.compiler.network import ParseFailedError, ask_parser
from trtdeploy.backends.trt_module import import_trt
from trtdeploy.core.errors import TrtdeployError

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def run() -> None:
    """Do what the request says, send what became of it, and end the process."""
    descriptor, parent = int(sys.argv[1]), int(sys.argv[2])
    _end_with_parent(parent)
    os.set_inheritable(descriptor, False)
    events = os.fdopen(descriptor, "w", encoding="utf-8")
    event: dict[str, Any] = {"event": "none"}
    try:
        event = _answer(events)
    except BaseException as error:
        event = {"event": "raised", "error": f"{type(error).__name__}: {error}"}
        sys.excepthook(type(error), error, error.__traceback__)  # into build.log
        raise
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        _send(events, event)  # the last act: it is answered with SIGKILL
        os._exit(0)  # static destructors of native libraries may hang or crash


def _answer(events: TextIO) -> dict[str, Any]:
    """Return the event that ends the run."""
    request = CompileRequest.from_json(sys.stdin.read())

    def report(phase: str) -> None:
        _send(events, {"event": "phase", "phase": phase})

    try:
        report("load")
        trt = import_trt(request.spec.module, "compiling")
        if request.parse_only:
            report("parse")
            return {"event": "answer", "answer": ask_parser(trt, request)}
        result = asdict(build_engine(trt, request, report))
    except ParseFailedError as error:
        return {"event": "parse_failed", "errors": [asdict(entry) for entry in error.errors]}
    except TrtdeployError as error:
        kind = type(error).__name__
        return {"event": "failed", "kind": kind, "message": error.message, "hint": error.hint}
    return {"event": "done", "result": result}


def _end_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent dies, even while native code hangs."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before
        os._exit(1)


def _send(events: TextIO, event: dict[str, Any]) -> None:
    events.write(json.dumps(event) + "\n")
    events.flush()
