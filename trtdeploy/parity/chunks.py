"""Walking large arrays in pieces, so that FP64 copies of them are never held whole."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from trtdeploy.core.arrays import Array, FloatArray

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
