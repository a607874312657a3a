"""Which channel each element of a flat tensor belongs to, for data that comes in chunks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

_Value = TypeVar("_Value", bound="np.floating[Any]")

PIECE_ELEMENTS = 1 << 18
"""Elements worked on at once inside a chunk: their temporary arrays stay in the CPU's cache."""


@dataclass(frozen=True)
class ChannelLayout:
    """A flat row-major tensor seen as runs of elements, one channel after the other, repeated.

    Element ``i`` belongs to channel ``i // run % channels``.

    Attributes:
        run: Consecutive elements of one channel.
    """

    channels: int
    run: int

    @classmethod
    def along(cls, dims: Sequence[int], axis: int | None) -> ChannelLayout:
        """Return the layout of a tensor whose ``axis`` counts channels; None for one channel.

        Raises:
            ValueError: ``axis`` is not one of the tensor's.
        """
        if axis is None:
            return cls(1, math.prod(dims))
        if not -len(dims) <= axis < len(dims):
            raise ValueError(f"axis {axis} of a tensor with {len(dims)} dimensions")
        axis %= len(dims)
        return cls(dims[axis], math.prod(dims[axis + 1 :]))

    def spread(self, values: npt.NDArray[_Value], start: int, count: int) -> npt.NDArray[_Value]:
        """Return the value of its channel for each of ``count`` elements from ``start`` on.

        Args:
            values: One value per channel, flat.
            start: Index of the first element in the flat tensor.
            count: How many elements; more than 0.
        """
        first, bounds = self._find_runs(start, count)
        channels = np.arange(first, first + len(bounds)) % self.channels
        return np.repeat(values[channels], np.diff(bounds, append=count))

    def find_largest(self, magnitudes: npt.NDArray[_Value], start: int) -> npt.NDArray[_Value]:
        """Return the largest of ``magnitudes`` per channel; 0 where a channel has none.

        Args:
            magnitudes: Elements of the flat tensor from ``start`` on, none negative; not empty.
            start: Index of the first element in the flat tensor.
        """
        first, bounds = self._find_runs(start, magnitudes.size)
        lead = first % self.channels
        rows = -(-(lead + len(bounds)) // self.channels)
        padded = np.zeros(rows * self.channels, magnitudes.dtype)
        padded[lead : lead + len(bounds)] = np.maximum.reduceat(magnitudes, bounds)
        largest: npt.NDArray[_Value] = padded.reshape(rows, self.channels).max(axis=0)
        return largest

    def _find_runs(self, start: int, count: int) -> tuple[int, npt.NDArray[np.int64]]:
        """Return the number of the first run, and where each run begins, counted from ``start``."""
        first, last = start // self.run, (start + count - 1) // self.run
        bounds = np.arange(first, last + 1, dtype=np.int64) * self.run - start
        bounds[0] = 0
        return first, bounds
