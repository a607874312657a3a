"""Counting the values of runs into histograms: samples in parallel, none of them kept."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import Any

import numpy as np
import numpy.typing as npt

from trtdeploy.backends.onnxruntime.probe import OnnxRuntimeProbe, ProbedValues
from trtdeploy.calibration.histogram import MagnitudeHistogram, is_finite
from trtdeploy.calibration.runs import CalibrationRun
from trtdeploy.core.arrays import Array
from trtdeploy.core.errors import ExecutionError, InputError
from trtdeploy.samples.source import OnNonfinite

WORKERS = 2
"""Runs at the same time: while one counts, which holds Python's lock, the other one computes."""

_Rows = npt.NDArray[np.bool_]


def count_threads() -> int:
    """Return how many threads each run may take, so that all workers keep every core busy."""
    return max(len(os.sched_getaffinity(0)) // WORKERS, 1)


class ValueCounter:
    """Histograms of values that a probe computes.

    Args:
        probe: Its outputs are counted.
        measured: Names of the probe's outputs and of model inputs, in the order of the result.
        on_nonfinite: What becomes of samples that make the model compute NaN or infinity.
    """

    def __init__(
        self, probe: OnnxRuntimeProbe, measured: Sequence[str], on_nonfinite: OnNonfinite
    ) -> None:
        self._probe = probe
        self._on_nonfinite = on_nonfinite
        self._lock = threading.Lock()
        self.histograms = {name: MagnitudeHistogram() for name in measured}
        self.samples = 0
        self.skipped: list[str] = []
        self.repeated: set[str] = set()
        """Tensors counted whole, because rows that are left out could not be told apart."""

    def count(
        self, runs: Generator[CalibrationRun, None, None], progress: Callable[[int], None]
    ) -> None:
        """Run everything; at most ``WORKERS`` runs are in memory at a time.

        Args:
            runs: What to feed.
            progress: Called with the number of samples that are done.

        Raises:
            InputError: A sample does not fit the model, or makes it compute NaN or infinity
                (unless such samples are skipped).
        """
        pending: deque[Future[None]] = deque()
        with ThreadPoolExecutor(WORKERS) as pool, closing(runs) as given:
            try:
                for run in given:
                    if len(pending) == WORKERS:
                        self._finish(pending, progress)
                    pending.append(pool.submit(self._count_run, run))
                    del run
                while pending:
                    self._finish(pending, progress)
            finally:
                for future in pending:
                    future.cancel()

    def _finish(self, pending: deque[Future[None]], progress: Callable[[int], None]) -> None:
        pending.popleft().result()
        progress(self.samples)

    def _count_run(self, run: CalibrationRun) -> None:
        try:
            values = self._probe.run(run.feeds)
        except ExecutionError as error:
            raise InputError(
                f"{run.samples[0]}: {error.message}",
                hint="Give samples that the model can run on.",
            ) from error
        rows = self._find_usable_rows(run, values)
        with self._lock:
            self.samples += int(rows[: len(run.samples)].sum())
            if not rows.any():
                return
            for name, histogram in self.histograms.items():
                value = run.feeds[name] if name in run.feeds else values.take(name)
                histogram.add(self._select(name, value, rows))

    def _find_usable_rows(self, run: CalibrationRun, values: ProbedValues) -> _Rows:
        """Return which rows are samples whose values are all finite."""
        rows = np.ones(len(run.samples) + run.padding, np.bool_)
        rows[len(run.samples) :] = False
        for name in self.histograms:
            if name in run.feeds:
                continue
            value = values.view(name)
            if is_finite(self._select(name, value, rows)):
                continue
            bad = _find_bad_rows(value, rows)
            for position in np.flatnonzero(bad):
                text = f"{run.samples[position]}, tensor {name!r}: {_describe(value, rows)}"
                if self._on_nonfinite == "error":
                    raise InputError(
                        text, hint="The model overflows on this sample: leave it out, or mend it."
                    )
                with self._lock:
                    self.skipped.append(text)
            rows &= ~bad
            if not rows.any():
                break
        return rows

    def _select(self, name: str, value: Array, rows: _Rows) -> Array:
        if rows.all():
            return value
        if _has_rows(value, rows):
            return value[rows]
        self.repeated.add(name)
        return value


def _has_rows(value: Array, rows: _Rows) -> bool:
    return value.ndim > 0 and value.shape[0] == rows.size


def _find_bad_rows(value: Array, rows: _Rows) -> _Rows:
    """Return the samples to blame: all of them where rows cannot be told apart."""
    if not _has_rows(value, rows):
        return rows.copy()
    finite: Any = np.isfinite(value).reshape(rows.size, -1).all(axis=1)
    bad: _Rows = rows & ~finite
    return bad


def _describe(value: Array, rows: _Rows) -> str:
    used = value[rows] if _has_rows(value, rows) else value
    nans, infinities = int(np.isnan(used).sum()), int(np.isinf(used).sum())
    return f"{nans} NaN and {infinities} infinite values, computed from finite inputs"
