"""Comparing outputs whose rows have no fixed order: detections after NMS, top-k lists.

``reference`` and ``candidate`` hold the same detections in another order, spread over one output
(N x 6) or several (boxes N x 4, scores N, classes N). Rows are paired by value: the distance of two
rows is the largest difference of their columns, each in units of the reference's largest magnitude
in that column, and the nearest pairs are taken first, up to a bound. A row without a partner is
missing or extra. Two detections with tied values may swap: of equally near partners the one whose
integers agree is taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from trtdeploy.core.arrays import Array, FloatArray, Outputs
from trtdeploy.core.errors import UsageError
from trtdeploy.parity.counts import find_family
from trtdeploy.parity.slices import is_float

ROW_BOUND = 0.05
"""Largest distance of partners: 5 % of a column's largest magnitude, 32 pixels of 640."""
MAX_ROWS = 4096
_TIE_PREFERENCE = 1e-9
_MATRIX_RANK = 2
Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class MatchedRows:
    """Outputs with their rows in the reference's order.

    Attributes:
        reference: Rows that have a partner.
        candidate: Their partners, in the same order.
        missing: Rows of the reference without a partner.
        extra: Rows of the candidate without a partner.
        moved: Rows whose partner stands elsewhere.
        names: Outputs whose rows were matched; the others are as they were.
    """

    reference: Outputs
    candidate: Outputs
    missing: int = 0
    extra: int = 0
    moved: int = 0
    names: tuple[str, ...] = ()


def match_rows(reference: Outputs, candidate: Outputs, *, bound: float = ROW_BOUND) -> MatchedRows:
    """Pair the rows of all outputs that share the same rows.

    The output with the highest rank tells where the rows are: its last axis but one, within each
    batch. Outputs of the same leading shape belong to the same rows.

    Args:
        reference: Outputs by name.
        candidate: Outputs by name; the number of rows may differ.
        bound: Largest distance of partners.

    Raises:
        UsageError: There are more rows than can be paired.
    """
    names, axis = _find_row_outputs(reference, candidate)
    if not names:
        return MatchedRows(reference, candidate)
    left = [_flatten_rows(reference[name], axis) for name in names]
    right = [_flatten_rows(candidate[name], axis) for name in names]
    pairs = [
        _pair_batch([a[batch] for a in left], [b[batch] for b in right], bound)
        for batch in range(len(left[0]))
    ]
    paired = sum(first.size for first, _ in pairs)
    return MatchedRows(
        _take(reference, names, axis, [first for first, _ in pairs]),
        _take(candidate, names, axis, [second for _, second in pairs]),
        missing=prod(left[0].shape[:2]) - paired,
        extra=prod(right[0].shape[:2]) - paired,
        moved=sum(int(np.count_nonzero(first != second)) for first, second in pairs),
        names=names,
    )


def _find_row_outputs(reference: Outputs, candidate: Outputs) -> tuple[tuple[str, ...], int]:
    shared = {
        name: array
        for name, array in reference.items()
        if name in candidate
        and find_family(array) in ("float", "integer", "boolean")
        and candidate[name].ndim == array.ndim
    }
    rank = max((array.ndim for array in shared.values()), default=0)
    if rank < _MATRIX_RANK:
        return (), 0
    lead = next(array for array in shared.values() if array.ndim == rank)
    axis = rank - _MATRIX_RANK
    names = tuple(n for n, a in shared.items() if a.shape[: axis + 1] == lead.shape[: axis + 1])
    rows = {candidate[name].shape[: axis + 1] for name in names}
    batches = {shape[:axis] for shape in rows} | {lead.shape[:axis]}
    # Outputs that disagree about the number of rows among themselves have no rows in common.
    return (names, axis) if len(rows) == 1 and len(batches) == 1 else ((), 0)


def _flatten_rows(array: Array, axis: int) -> Array:
    rows = array.shape[axis]
    batches = int(np.prod(array.shape[:axis]))
    columns = int(np.prod(array.shape[axis + 1 :]))
    return array.reshape(batches, rows, columns)


def _pair_batch(left: list[Array], right: list[Array], bound: float) -> tuple[Indices, Indices]:
    """Return the rows that have a partner, and those partners."""
    counts = len(left[0]), len(right[0])
    if max(counts) > MAX_ROWS:
        raise UsageError(
            f"{max(counts)} rows cannot be matched by value, {MAX_ROWS} at most",
            hint="Row matching is for detections after NMS; compare raw outputs in order.",
        )
    distances = _measure_distances(left, right)
    near = np.flatnonzero(distances <= bound)
    order = near[np.argsort(distances.reshape(-1)[near], kind="stable")]
    partner = np.full(counts[0], -1, np.int64)
    free = np.ones(counts[1], np.bool_)
    for first, second in zip(*np.unravel_index(order, distances.shape), strict=True):
        if partner[first] < 0 and free[second]:
            partner[first], free[second] = second, False
    matched = np.flatnonzero(partner >= 0)
    return matched, partner[matched]


def _measure_distances(left: list[Array], right: list[Array]) -> FloatArray:
    distances = np.zeros((len(left[0]), len(right[0])))
    for first, second in zip(left, right, strict=True):
        # A column of integers is an index or a class: close by is not similar.
        weighs = is_float(first)
        for column in range(first.shape[1] if first.shape[1] == second.shape[1] else 0):
            a, b = first[:, column].astype(np.float64), second[:, column].astype(np.float64)
            if weighs:
                scale = max(np.abs(a).max(initial=0.0), np.finfo(np.float64).tiny)
                gaps = np.abs(a[:, None] - b[None, :]) / scale
                np.maximum(distances, np.nan_to_num(gaps, nan=np.inf), out=distances)
            else:
                distances += _TIE_PREFERENCE * (a[:, None] != b[None, :])
    return distances


def _take(outputs: Outputs, names: tuple[str, ...], axis: int, rows: list[Indices]) -> Outputs:
    taken: dict[str, Array] = dict(outputs)
    for name in names:
        flat = _flatten_rows(outputs[name], axis)
        picked = [flat[batch][index] for batch, index in enumerate(rows)]
        shape = outputs[name].shape[axis + 1 :]
        joined = np.concatenate(picked) if picked else flat.reshape(0, flat.shape[-1])
        taken[name] = joined.reshape(len(joined), *shape)
    return taken


def forgive_tied_indices(
    reference: Outputs, candidate: Outputs, *, slack: float
) -> tuple[Outputs, int]:
    """Return the candidate with indices of tied values taken as equal, and how many there were.

    Top-k lists have two outputs of one shape: values (k best, along the last axis) and their
    indices. Where values are tied, any order of their indices is right; at the end of the list, so
    is any index with the same value, which the reference does not show.

    Args:
        reference: Outputs by name.
        candidate: Outputs by name.
        slack: Largest difference of tied values, as a share of the row's largest magnitude.
    """
    changed: dict[str, Array] = dict(candidate)
    count = 0
    for name, indices in reference.items():
        values = _find_values(reference, name)
        other = candidate.get(name)
        if values is None or other is None or other.shape != indices.shape:
            continue
        forgiven = _find_tied(values, indices, other, slack)
        if forgiven.any():
            count += int(np.count_nonzero(forgiven))
            changed[name] = np.where(forgiven, indices, other)
    return changed, count


def _find_values(outputs: Mapping[str, Array], name: str) -> Array | None:
    indices = outputs[name]
    if find_family(indices) != "integer" or indices.ndim == 0 or indices.size == 0:
        return None
    same = [a for a in outputs.values() if is_float(a) and a.shape == indices.shape]
    return same[0] if len(same) == 1 else None


def _find_tied(values: Array, indices: Array, other: Array, slack: float) -> npt.NDArray[np.bool_]:
    length = indices.shape[-1]
    forgiven = np.zeros((indices.size // length, length), np.bool_)
    rows = (array.reshape(-1, length) for array in (values.astype(np.float64), indices, other))
    for row, (scores, mine, theirs) in enumerate(zip(*rows, strict=True)):
        for place in np.flatnonzero(mine != theirs):
            allowed = slack * np.abs(scores).max()
            tied = np.abs(scores - scores[place]) <= allowed
            is_last = bool(tied[-1]) and theirs[place] not in mine
            forgiven[row, place] = is_last or theirs[place] in mine[tied]
    return forgiven.reshape(indices.shape)
