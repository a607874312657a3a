"""Ctrl-C while native code runs: Python acts on a signal only once that code has returned.

The signal's number is written to a pipe by the interpreter at once; a thread that waits there asks
whatever is running to stop, and then Python raises ``KeyboardInterrupt`` as ever.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import weakref
from collections.abc import Iterator
from typing import Protocol


class Stoppable(Protocol):
    """Something that runs for long in native code."""

    def stop(self) -> None:
        """End what is running, from another thread; it fails there then."""
        ...


_running: weakref.WeakSet[Stoppable] = weakref.WeakSet()


def stop_on_interrupt(runner: Stoppable) -> None:
    """Stop ``runner`` at Ctrl-C, as long as it lives and ``watch_interrupts`` is active."""
    _running.add(runner)


@contextlib.contextmanager
def watch_interrupts() -> Iterator[None]:
    """Stop registered runners at Ctrl-C; for programs, as a process has one place for this.

    Does nothing outside the main thread, which alone may, or where somebody else has taken the
    place.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    earlier = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    try:
        if earlier == -1:
            threading.Thread(target=_stop_all, args=(reader,), daemon=True).start()
        else:
            signal.set_wakeup_fd(earlier)
            os.close(reader)
        yield
    finally:
        if earlier == -1:
            signal.set_wakeup_fd(-1)
        os.close(writer)  # ends the thread


def _stop_all(reader: int) -> None:
    with os.fdopen(reader, "rb", buffering=0) as pipe:
        while received := pipe.read(1):
            if received[0] == signal.SIGINT:
                for runner in list(_running):
                    runner.stop()
