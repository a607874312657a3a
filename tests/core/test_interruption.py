"""Ctrl-C reaches native code that is running, in the program and in nobody else's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from tests.builders import BOOL, INT64, constant, graph, model, op, value
from trtdeploy.core.interruption import stop_on_interrupt, watch_interrupts


class Recorder:
    def __init__(self) -> None:
        self.stopped = threading.Event()

    def stop(self) -> None:
        self.stopped.set()


def interrupt_myself() -> None:
    with watch_interrupts():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)


def test_runners_are_stopped_at_once() -> None:
    recorder = Recorder()
    stop_on_interrupt(recorder)
    with pytest.raises(KeyboardInterrupt):
        interrupt_myself()
    assert recorder.stopped.wait(5)
    assert signal.set_wakeup_fd(-1) == -1  # the place is free again


def test_other_signals_stop_nothing() -> None:
    recorder = Recorder()
    stop_on_interrupt(recorder)
    earlier = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        with watch_interrupts():
            os.kill(os.getpid(), signal.SIGUSR1)
            assert not recorder.stopped.wait(0.2)
    finally:
        signal.signal(signal.SIGUSR1, earlier)


def test_a_place_that_is_taken_is_left_alone() -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    earlier = signal.set_wakeup_fd(writer)
    try:
        with watch_interrupts():
            assert signal.set_wakeup_fd(writer) == writer
    finally:
        assert signal.set_wakeup_fd(earlier) == writer
        os.close(reader)
        os.close(writer)


def test_another_thread_may_not_and_does_not() -> None:
    errors: list[BaseException] = []

    def use() -> None:
        try:
            with watch_interrupts():
                pass
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert errors == []


def save_endless(path: Path) -> None:
    """Write a model whose one Loop runs for minutes on any machine, in steps of microseconds."""
    body = graph(
        [op("Identity", "going", "still"), op("Add", "state one", "next")],
        [value("step", (), INT64), value("going", (), BOOL), value("state", (4,))],
        [value("still", (), BOOL), value("next", (4,))],
        [constant("one", np.ones(4))],
    )
    loop = op("Loop", "count - x", "y", body=body)
    counts = [constant("count", 500_000_000, np.int64)]
    proto = model([loop], [value("x", (4,))], [value("y", (4,))], counts)
    path.write_bytes(proto.SerializeToString())


def test_ctrl_c_does_not_wait_for_a_long_run_of_onnxruntime(tmp_path: Path) -> None:
    save_endless(tmp_path / "slow.onnx")
    command = [sys.executable, "-m", "trtdeploy", "build", "slow.onnx", "-p", "cpu-fp32"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    while "compile" not in process.stderr.readline():  # parity comes next
        assert process.poll() is None
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    started = time.monotonic()
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert time.monotonic() - started < 10
    assert sorted(path.name for path in tmp_path.iterdir()) == ["slow.onnx"]
