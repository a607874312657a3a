"""Equality of integers, booleans and strings, without wrap and without a detour over floats."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from trtdeploy.core.arrays import Array
from trtdeploy.parity.chunks import is_float

_FAMILIES = {"i": "integer", "u": "integer", "b": "boolean", "c": "complex"}
_TEXT = ("O", "U", "S", "T")


def find_family(array: Array) -> str:
    """Return ``float``, ``integer``, ``boolean``, ``text`` or ``complex``.

    ml_dtypes' 4-bit and 2-bit integers count as integers.
    """
    if is_float(array):
        return "float"
    if array.dtype.kind == "V" and "int" in array.dtype.name:
        return "integer"
    if array.dtype.kind in _TEXT:
        return "text"
    return _FAMILIES.get(array.dtype.kind, array.dtype.name)


def find_equal(reference: Array, candidate: Array) -> npt.NDArray[np.bool_]:
    """Return where two arrays of one shape and one family hold the same value.

    int64 beyond 2^53 is told apart, and so is uint64 from a negative int64, although numpy would
    promote that pair to FP64.
    """
    if find_family(reference) != "integer":
        return np.asarray(reference == candidate, dtype=np.bool_)
    left, right = _widen(reference), _widen(candidate)
    equal = left.view(np.uint64) == right.view(np.uint64)
    if left.dtype != right.dtype:
        signed = left if left.dtype == np.int64 else right
        equal &= signed >= 0
    return np.asarray(equal, dtype=np.bool_)


def measure_largest_gap(reference: Array, candidate: Array) -> int:
    """Return the largest |candidate - reference| of two integer arrays, exactly."""
    if reference.size == 0:
        return 0
    left, right = _widen(reference), _widen(candidate)
    if left.dtype != right.dtype:
        pairs = zip(left.reshape(-1).tolist(), right.reshape(-1).tolist(), strict=True)
        return max(abs(int(a) - int(b)) for a, b in pairs)
    # The difference modulo 2^64 is the true one, for it lies within [0, 2^64).
    gap = np.maximum(left, right).view(np.uint64) - np.minimum(left, right).view(np.uint64)
    return int(gap.max())


def _widen(array: Array) -> Array:
    wide = np.uint64 if array.dtype.kind == "u" or "uint" in array.dtype.name else np.int64
    return np.atleast_1d(np.ascontiguousarray(array)).astype(wide)
