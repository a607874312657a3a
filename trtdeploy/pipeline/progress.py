"""How the pipeline tells its caller what it is doing; drawing is the caller's business."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


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
