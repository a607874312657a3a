"""How far the outputs of two files are apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from trtdeploy.backends.session import Array

_TINY = float(np.finfo(np.float32).tiny)


def compare_outputs(expected: Mapping[str, Array], found: Mapping[str, Array]) -> tuple[float, str]:
    """Return the largest gap over all outputs, and the output that has it; 0 and empty if none."""
    errors = {name: measure_gap(array, found[name]) for name, array in expected.items()}
    worst = max(errors, key=errors.__getitem__, default="")
    return (errors[worst], worst) if worst and errors[worst] else (0.0, "")


def measure_gap(expected: Array, found: Array) -> float:
    """Return the largest difference relative to the largest magnitude; inf when it is no number."""
    if expected.shape != found.shape or expected.dtype != found.dtype:
        return float("inf")
    if expected.dtype.kind in "iubOUS":
        return 0.0 if np.array_equal(expected, found) else float("inf")
    left, right = expected.astype(np.float64), found.astype(np.float64)
    finite = np.isfinite(left)
    if not np.array_equal(left[~finite], right[~finite], equal_nan=True):
        return float("inf")
    left, right = left[finite], right[finite]
    if not np.isfinite(right).all():
        return float("inf")
    gap = float(np.abs(left - right).max(initial=0.0))
    return gap / max(float(np.abs(left).max(initial=0.0)), _TINY) if gap else 0.0


def join_parts(parts: Sequence[Array], whole: Array) -> Sequence[Array]:
    """Return the parts one after the other where the whole is longer, else each by itself."""
    first = parts[0].shape
    if len(first) == whole.ndim:
        for axis, size in enumerate(first):
            if whole.shape[axis] == len(parts) * size and size:
                return [np.concatenate(parts, axis=axis)]
    return parts
