"""Slices of an output: its channels, tokens or hidden units, each of which is looked at alone.

One number over a whole output hides what happens in a part of it: in a detector's output the box
coordinates are a thousand times larger than the class scores, and a head that sees 5 % of the
anchors is 5 % of the elements. So sums are kept per *slice* (one position along one axis, over all
samples) and per *segment* (up to 16 consecutive stretches of all other axes but the first, which
counts as the batch).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from trtdeploy.core.arrays import Array, FloatArray

MAX_SLICES = 4096
"""A longer axis is a grid of positions; its slices would be too small to tell anything."""
SEGMENTS = 16
_FEWEST_SLICES = 2
_MAP_RANK = 4


@dataclass(frozen=True)
class SliceView:
    """One way to cut arrays into slices and segments.

    Attributes:
        axis: Axis whose positions are the slices.
        segments: Number of segments, 1 when the slices cannot be cut.
        ids: ``slice * segments + segment`` of every element in row-major order; repeats itself
            for every sample of a batch.
    """

    axis: int
    slices: int
    segments: int
    ids: npt.NDArray[np.int32]

    def sum_pieces(self, offset: int, values: Sequence[FloatArray]) -> FloatArray:
        """Return sums over consecutive elements, quantities x slices x segments.

        Args:
            offset: Position of the first element in row-major order.
            values: Quantities of the same elements, flat.
        """
        cells = self.slices * self.segments
        ids = self.ids[np.arange(offset, offset + values[0].size) % max(self.ids.size, 1)]
        sums = np.zeros((len(values), cells))
        for row, value in enumerate(values):
            sums[row] = np.bincount(ids, weights=value, minlength=cells)
        return sums.reshape(len(values), self.slices, self.segments)


class SliceSums:
    """Sums of some quantities over the slices of outputs that differ in batch size only.

    Args:
        quantities: How many quantities each element has.
        segments: Most segments per slice.
    """

    def __init__(self, quantities: int, segments: int = SEGMENTS) -> None:
        self._quantities = quantities
        self._segments = segments
        self._shape: tuple[int, ...] | None = None
        self._views: tuple[SliceView, ...] = ()
        self._sums: list[FloatArray] = []

    def start(self, shape: tuple[int, ...]) -> None:
        """Take the shape of the array whose elements come next."""
        if self._shape is None:
            self._shape = shape
            self._views = make_views(shape, segments=self._segments)
            self._sums = [
                np.zeros((self._quantities, view.slices, view.segments)) for view in self._views
            ]
        self._drop_views_that_do_not_fit(shape)
        self._shape = shape

    def _drop_views_that_do_not_fit(self, shape: tuple[int, ...]) -> None:
        before = self._shape or ()
        same_samples = shape[1:] == before[1:] and len(shape) == len(before)
        kept = [
            (view, sums)
            for view, sums in zip(self._views, self._sums, strict=True)
            if same_samples and (view.axis > 0 or shape == before)
        ]
        self._views = tuple(view for view, _ in kept)
        self._sums = [sums for _, sums in kept]

    def add(self, offset: int, values: Sequence[FloatArray]) -> None:
        """Add consecutive elements of the array that was started."""
        for index, view in enumerate(self._views):
            self._sums[index] += view.sum_pieces(offset, values)

    def read(self) -> tuple[tuple[SliceView, FloatArray], ...]:
        """Return each view with its sums, quantities x slices x segments."""
        return tuple(zip(self._views, self._sums, strict=True))


def make_views(shape: tuple[int, ...], *, segments: int = SEGMENTS) -> tuple[SliceView, ...]:
    """Return up to two views along axes where channels may be.

    These are axis 1 and the last axis; of maps (N x channels x H x W) only axis 1, because
    neighbouring rows are alike, so that their slices would not count as many. Axis 0 is used when
    no other can be: for an output without a batch.

    Args:
        shape: Of the output; an empty or scalar output has no view.
        segments: Most segments per slice.
    """
    rank = len(shape)
    if prod(shape) == 0 or rank == 0:
        return ()
    if rank >= _MAP_RANK:
        return (_make_view(shape, 1, segments),) if shape[1] <= MAX_SLICES else ()
    usable = [axis for axis in range(rank) if _FEWEST_SLICES <= shape[axis] <= MAX_SLICES]
    axes = [axis for axis in (1, 2) if axis in usable] or usable[:1]
    return tuple(_make_view(shape, axis, segments) for axis in axes)


def _make_view(shape: tuple[int, ...], axis: int, segments: int) -> SliceView:
    rank = len(shape)
    sample = shape if axis == 0 else (1, *shape[1:])
    rest = [size if other not in (0, axis) else 1 for other, size in enumerate(shape)]
    positions = prod(rest)
    count = min(segments, positions)
    segment = (np.arange(positions) * count // positions).reshape(rest)
    place = np.arange(shape[axis]).reshape([-1 if other == axis else 1 for other in range(rank)])
    ids = np.broadcast_to(place * count + segment, sample)
    return SliceView(axis, shape[axis], count, ids.astype(np.int32).reshape(-1))


CHUNK_ELEMENTS = 1 << 16
"""512 KiB per FP64 temporary: a dozen of them stay in a CPU's cache."""


def is_float(array: Array) -> bool:
    """Tell whether an array holds real floating-point numbers, bfloat16 and FP8 included."""
    # ml_dtypes' types report kind "V" or "f" depending on the version; numpy casts all of them.
    kind = array.dtype.kind
    return kind == "f" or (kind == "V" and array.dtype.name.startswith(("bfloat", "float")))


def iterate_chunks(
    *arrays: Array, elements: int = CHUNK_ELEMENTS
) -> Iterator[tuple[int, tuple[FloatArray, ...]]]:
    """Yield the offset and the FP64 values of consecutive pieces of arrays of one shape.

    So FP64 copies of large arrays are never held whole.

    Args:
        *arrays: Same shape each; numbers.
        elements: Most elements per piece.
    """
    flat = [array.reshape(-1) for array in arrays]
    for start in range(0, flat[0].size, elements):
        yield start, tuple(a[start : start + elements].astype(np.float64) for a in flat)


def iterate_rows(
    *arrays: Array, axis: int, elements: int = CHUNK_ELEMENTS
) -> Iterator[tuple[FloatArray, ...]]:
    """Yield FP64 matrices whose rows run along ``axis``; a row is never cut.

    Args:
        *arrays: Same shape each; numbers.
        axis: Axis that becomes the columns.
        elements: Most elements per matrix; a longer row comes alone.
    """
    columns = arrays[0].shape[axis]
    moved = [np.moveaxis(array, axis, -1) for array in arrays]
    count = prod(moved[0].shape[:-1])
    step = max(elements // max(columns, 1), 1)
    flat = [array.reshape(count, columns) for array in moved]
    for start in range(0, count, step):
        yield tuple(array[start : start + step].astype(np.float64) for array in flat)
