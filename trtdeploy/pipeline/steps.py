"""Steps of a build, each with a status, a duration and a summary."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from trtdeploy.pipeline.progress import ProgressCallback, ProgressEvent


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
    status: str = "ok"
    seconds: float = 0.0
    detail: str = ""
    log: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for manifests."""
        return asdict(self)


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
        earlier: Sequence[dict[str, Any]] = (),
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

    def to_list(self) -> list[dict[str, Any]]:
        """Return all steps as plain data; one that was run again replaces its predecessor."""
        again = {record.name for record in self.records}
        kept = [entry for entry in self._earlier if entry.get("name") not in again]
        return [*kept, *(record.to_dict() for record in self.records)]

    def skip(self, name: str, reason: str) -> None:
        """Record a step that was not run, and why."""
        self.records.append(StepRecord(name, "skipped", detail=reason))
