"""Steps of a command: each tells its caller how it goes, and is remembered with how it went."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class ProgressEvent:
    """Something happened, or a quarter of a second passed.

    Attributes:
        step: Name of the pipeline step.
        detail: What it is busy with, e.g. the compiler's phase.
        elapsed_s: Seconds since the step started.
        estimate_s: How long the step took last time; None when unknown.
        fraction: Part of the step that is done, 0 to 1; None when that cannot be known.
        finished: The step has ended; ``detail`` sums it up.
    """

    step: str
    detail: str = ""
    elapsed_s: float = 0.0
    estimate_s: float | None = None
    fraction: float | None = None
    finished: bool = False


ProgressCallback = Callable[[ProgressEvent], None]


def ignore_progress(_event: ProgressEvent) -> None:
    """Take no notice."""


@dataclass
class StepRecord:
    """Outcome of one step.

    Attributes:
        name: ``load``, ``check``, ``calibrate``, ``type``, ``compile`` or ``parity``.
        status: ``ok``, ``failed`` or ``skipped``.
        seconds: Wall time.
        detail: One line for people.
        log: Lines worth keeping, e.g. what was changed in the model.
    """

    name: str
    status: Literal["ok", "failed", "skipped"] = "ok"
    seconds: float = 0.0
    detail: str = ""
    log: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Refuse a time that is none: reports of others are read into this class."""
        if not 0 <= self.seconds < math.inf:
            raise ValueError("seconds is no time")


class StepRunner:
    """Runs steps and remembers how they went.

    Args:
        progress: Told as steps start and end.
        earlier: Steps that were run before, on another machine perhaps.
        clock: Seconds from anywhere.
    """

    def __init__(
        self,
        progress: ProgressCallback,
        earlier: Sequence[StepRecord] = (),
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.records: list[StepRecord] = []
        self._earlier = list(earlier)
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
            record.status, record.detail = "failed", record.detail or "failed"
            raise
        finally:
            record.seconds = round(self._clock() - started, 3)
            self.progress(ProgressEvent(name, record.detail, record.seconds, finished=True))

    def list_all(self) -> tuple[StepRecord, ...]:
        """Return all steps; one that was run again replaces its predecessor."""
        again = {record.name for record in self.records}
        kept = [record for record in self._earlier if record.name not in again]
        return (*kept, *self.records)

    def skip(self, name: str, reason: str) -> None:
        """Record a step that was not run, and why."""
        self.records.append(StepRecord(name, "skipped", detail=reason))
