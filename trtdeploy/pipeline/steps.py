"""Steps of a build, each with a status, a duration and a summary."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from trtdeploy.pipeline.progress import ProgressCallback, ProgressEvent

STEPS = ("load", "check", "type", "compile", "parity", "write")
"""Names in order."""


@dataclass
class StepRecord:
    """Outcome of one step.

    Attributes:
        name: One of ``STEPS``.
        status: ``ok``, ``failed`` or ``skipped``.
        seconds: Wall time.
        detail: One line for people.
        log: Lines worth keeping, e.g. what was changed in the model.
    """

    name: str
    status: str = "ok"
    seconds: float = 0.0
    detail: str = ""
    log: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for manifests."""
        return asdict(self)


class StepRunner:
    """Runs steps and remembers how they went."""

    def __init__(self, progress: ProgressCallback, clock: Callable[[], float] = time.perf_counter):
        self.records: list[StepRecord] = []
        self.progress = progress
        self._clock = clock

    @contextmanager
    def run(self, name: str) -> Iterator[StepRecord]:
        """Time a step; an exception marks it as failed and goes on its way."""
        record = StepRecord(name)
        self.records.append(record)
        self.progress(ProgressEvent(name))
        started = self._clock()
        try:
            yield record
        except BaseException:
            record.status = "failed"
            raise
        finally:
            record.seconds = round(self._clock() - started, 3)
            self.progress(ProgressEvent(name, record.detail, record.seconds, finished=True))

    def skip(self, name: str, reason: str) -> None:
        """Record a step that was not run, and why."""
        self.records.append(StepRecord(name, "skipped", detail=reason))
