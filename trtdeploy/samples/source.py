"""Samples that are read one at a time and handed out in batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from trtdeploy.config.batch_layout import BatchLayout
from trtdeploy.core.arrays import Array
from trtdeploy.core.errors import InputError

OnNonfinite = Literal["error", "skip"]
"""What becomes of a sample that holds NaN or infinity."""
_MOST_LISTED = 12


@dataclass(frozen=True)
class SampleId:
    """Where a sample came from.

    Attributes:
        index: Position inside the file, from 0.
    """

    file: Path
    index: int = 0

    def __str__(self) -> str:
        """Return ``calib.npz, sample 12``."""
        return f"{self.file}, sample {self.index}"


@dataclass(frozen=True)
class Sample:
    """One sample: its origin, and one array per input without the axis that counts samples."""

    id: SampleId
    arrays: Mapping[str, Array]


@dataclass(frozen=True)
class BadSample:
    """A sample with values that are not numbers, in one of its inputs."""

    id: SampleId
    input: str
    nan_count: int
    inf_count: int

    def __str__(self) -> str:
        """Return ``calib.npz, sample 12, input 'x': 1 NaN and 0 infinite values``."""
        counts = f"{self.nan_count} NaN and {self.inf_count} infinite values"
        return f"{self.id}, input {self.input!r}: {counts}"


@dataclass(frozen=True)
class Batch:
    """Feeds of one run.

    Attributes:
        feeds: One array per input.
        samples: What was stacked, in order; empty only for made-up data.
        padding: Rows at the end that repeat earlier ones, because the model runs no smaller batch.
    """

    feeds: dict[str, Array]
    samples: tuple[SampleId, ...]
    padding: int = 0


class SampleSource(ABC):
    """A set of samples that may be iterated any number of times.

    Memory depends on the batch, not on the number of samples.

    Attributes:
        description: For people and reports, e.g. ``calib.npz (70 samples)``.
        notes: What was assumed or converted, one sentence each.
        on_nonfinite: What becomes of samples with NaN or infinity.
    """

    def __init__(self, batch_axes: BatchLayout) -> None:
        self.description = ""
        self.notes: tuple[str, ...] = ()
        self._batch_axes = batch_axes
        self.on_nonfinite: OnNonfinite = "error"
        self._skipped: dict[SampleId, BadSample] = {}

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of samples, bad ones included."""

    @abstractmethod
    def _iterate_samples(self, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[Sample]:
        """Yield all samples, those of equal sizes one after the other."""

    @property
    def skipped(self) -> tuple[BadSample, ...]:
        """Samples left out so far, each once however often the source was iterated."""
        return tuple(self._skipped.values())

    def iterate_batches(
        self, shapes: Mapping[str, tuple[int, ...]], *, min_batch: int = 1
    ) -> Iterator[Batch]:
        """Yield batches of the wanted size; the last one may be smaller.

        Only samples of equal sizes, and equal in what a whole batch shares, meet in a batch. Sizes
        beside the batch are those of the data; images without a size of their own are made to fit.

        Args:
            shapes: Wanted shape of every input.
            min_batch: Smallest batch that can be run: a smaller rest repeats its samples.

        Raises:
            InputError: A file turns out to be damaged, a sample is not finite (unless such
                samples are skipped), or no sample is left.
        """
        size = max(self._batch_axes.find_batch_size(shapes), 1) if self._batch_axes.inputs else 1
        smallest = self._batch_axes.fixed or min(min_batch, size)
        waiting: list[Sample] = []
        found = False
        for sample in self._iterate_usable(shapes):
            if waiting and not self._fits(waiting[0], sample):
                yield self._stack(waiting, smallest)
                waiting = []
            waiting.append(sample)
            found = True
            if len(waiting) == size:
                yield self._stack(waiting, smallest)
                waiting = []
        if waiting:
            yield self._stack(waiting, smallest)
        if not found:
            raise InputError(f"{self.description}: no usable sample: every one holds NaN or Inf")

    def _iterate_usable(self, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[Sample]:
        for sample in self._iterate_samples(shapes):
            bad = find_nonfinite(sample)
            if bad is None:
                yield sample
            elif self.on_nonfinite == "skip":
                self._skipped[sample.id] = bad
            else:
                raise InputError(str(bad), hint="Repair the data, or leave such samples out.")

    def _fits(self, first: Sample, other: Sample) -> bool:
        axes = self._batch_axes.inputs
        return all(
            array.shape == other.arrays[name].shape
            if name in axes
            else array is other.arrays[name] or np.array_equal(array, other.arrays[name])
            for name, array in first.arrays.items()
        )

    def _stack(self, samples: Sequence[Sample], smallest: int) -> Batch:
        padding = max(smallest - len(samples), 0) if self._batch_axes.inputs else 0
        rows = [samples[i % len(samples)] for i in range(len(samples) + padding)]
        feeds = {
            name: np.stack([row.arrays[name] for row in rows], self._batch_axes.inputs[name])
            if name in self._batch_axes.inputs
            else array
            for name, array in samples[0].arrays.items()
        }
        return Batch(feeds, tuple(sample.id for sample in samples), padding)


def find_nonfinite(sample: Sample) -> BadSample | None:
    """Return the first input of a sample with NaN or infinity; None when all are finite."""
    for name, array in sample.arrays.items():
        if array.dtype.kind not in "fc" or np.isfinite(array).all():
            continue
        nans = int(np.isnan(array).sum())
        return BadSample(sample.id, name, nans, int(np.isinf(array).sum()))
    return None


def raise_problems(problems: Sequence[str], hint: str = "") -> None:
    """Raise one ``InputError`` that lists the problems; return when there are none.

    Raises:
        InputError: There are problems. Past a dozen they are only counted.
    """
    if not problems:
        return
    lines = list(problems[:_MOST_LISTED])
    if len(problems) > _MOST_LISTED:
        lines.append(f"and {len(problems) - _MOST_LISTED} more")
    text = lines[0] if len(lines) == 1 else "\n  ".join([f"{len(problems)} problems:", *lines])
    raise InputError(text, hint=hint)
