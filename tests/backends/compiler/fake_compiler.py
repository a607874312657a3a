"""A compiler that misbehaves on request, under the name of a real one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

MakeCompiler = Callable[[str], Path]
"""Installs the fake compiler for one test: takes the behaviour, e.g. ``build:abort``, and returns
the file in which misbehaving processes leave their ids."""

SOURCE = '''
"""Does what FAKE_COMPILER says, e.g. "build:abort": when (import, parse, build) and what."""

import ctypes
import os
import subprocess
import sys
import time
from unittest.mock import MagicMock

__version__ = "0.0.fake"
TIME_S = 60


class ILogger:
    def __init__(self):
        pass


class IProgressMonitor(ILogger):
    pass


def behave(now):
    when, _, what = os.environ.get("FAKE_COMPILER", "").partition(":")
    if now != when:
        return
    with open(os.environ["FAKE_PID_FILE"], "a") as file:
        file.write(f"{os.getpid()}\\n")
    os.write(2, f"last words of {what}\\n".encode())
    BEHAVIOURS[what]()


def load_missing_library():
    ctypes.CDLL("libmissing.so.1")


def raise_import_error():
    raise ImportError("libcudart.so.13: cannot open shared object file")


def raise_runtime_error():
    raise RuntimeError("the binding said no")


def write_garbage():
    os.write(1, b"\\xff\\x00 native\\x1b[31m words\\n")
    os.write(1, b'{"event": "done", "result": {}}\\n')
    sys.stdout.write("python words")


def spawn_and_hang():
    child = subprocess.Popen(["sleep", str(TIME_S)])
    with open(os.environ["FAKE_PID_FILE"], "a") as file:
        file.write(f"{child.pid}\\n")
    time.sleep(TIME_S)


def close_everything_and_hang():
    os.closerange(3, 64)
    time.sleep(TIME_S)


BEHAVIOURS = {
    "abort": os.abort,
    "segfault": lambda: ctypes.string_at(0),
    "hang": lambda: time.sleep(TIME_S),
    "hang_with_gil": lambda: ctypes.PyDLL(None).sleep(TIME_S),
    "spawn_and_hang": spawn_and_hang,
    "close_everything_and_hang": close_everything_and_hang,
    "exit": lambda: sys.exit(3),
    "native_exit": lambda: os._exit(0),
    "runtime_error": raise_runtime_error,
    "import_error": raise_import_error,
    "missing_library": load_missing_library,
    "garbage": write_garbage,
    "nothing": lambda: None,
}


def parse_from_file(path):
    behave("parse")
    return True


def build_serialized_network(network, config):
    config.progress_monitor.phase_start("Tactics", None, 1)
    behave("build")
    return b"plan"


trt = MagicMock()
trt.OnnxParser.return_value.parse_from_file = parse_from_file
builder = trt.Builder.return_value
builder.build_serialized_network = build_serialized_network
builder.create_network.return_value.num_layers = 0
builder.create_network.return_value.num_inputs = 0


def __getattr__(name):
    return getattr(trt, name)


behave("import")
'''
