"""The batch axis: how feeds are cut along it, and what outputs of its parts add up to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from trtdeploy.core.arrays import Array, Feeds, Outputs
from trtdeploy.core.tensors import TensorSpec
from trtdeploy.parity.samples_axes import find_batch_axes


@dataclass(frozen=True)
class BatchLayout:
    """Where the batch is; inputs and outputs that are not listed do not have it.

    Attributes:
        inputs: Axis by input.
        outputs: Axis by output, for those that declare the symbol of an input's batch.
    """

    inputs: Mapping[str, int]
    outputs: Mapping[str, int] = field(default_factory=dict)


def find_batch_layout(
    inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec] = ()
) -> BatchLayout | None:
    """Return where the batch is; None when its size cannot change.

    Outputs are tied to inputs by symbol, not by position.

    Args:
        inputs: Of the model.
        outputs: Of the model.
    """
    found = find_batch_axes(inputs)
    if not found.axes or found.fixed is not None:
        return None
    shapes = {spec.name: spec.shape or () for spec in inputs}
    symbols = {shapes[name][axis] for name, axis in found.axes.items()}
    declared = {
        spec.name: axis
        for spec in outputs
        for axis, size in enumerate(spec.shape or ())
        if isinstance(size, str) and size in symbols
    }
    return BatchLayout(dict(found.axes), declared)


def count_samples(feeds: Feeds, layout: BatchLayout | None) -> int:
    """Return how many samples feeds hold; 1 without a batch."""
    axes = {} if layout is None else layout.inputs
    return next((feeds[name].shape[axis] for name, axis in axes.items() if name in feeds), 1)


def split_feeds(feeds: Feeds, layout: BatchLayout, sizes: Iterable[int]) -> list[Feeds]:
    """Cut feeds along the batch; inputs without a batch go to every part.

    Args:
        feeds: Arrays by input.
        layout: Where the batch is.
        sizes: Samples of each part, from the first sample on.
    """
    parts: list[Feeds] = []
    start = 0
    for size in sizes:
        parts.append(
            {name: _cut(a, layout.inputs.get(name), start, size) for name, a in feeds.items()}
        )
        start += size
    return parts


def _cut(array: Array, axis: int | None, start: int, size: int) -> Array:
    if axis is None:
        return array
    return np.ascontiguousarray(array.take(range(start, start + size), axis=axis))


def join_parts(parts: Sequence[Outputs], whole: Outputs, layout: BatchLayout) -> Outputs:
    """Return what the outputs of the whole batch should be, given those of its parts.

    An output that declares the batch symbol is the parts' outputs one after the other. So is one
    that does not, when the sizes add up. Any other does not depend on the batch: then it must be
    what the first part alone gives.

    Args:
        parts: Outputs of each part, same names.
        whole: Outputs of the whole batch, for their shapes.
        layout: Where the batch is.
    """
    joined: dict[str, Array] = {}
    for name in whole:
        arrays = [part[name] for part in parts]
        axis = layout.outputs.get(name)
        if axis is None and _adds_up(arrays, whole[name]):
            axis = 0
        can_join = axis is not None and all(array.ndim > axis for array in arrays)
        joined[name] = np.concatenate(arrays, axis=axis) if can_join else arrays[0]
    return joined


def _adds_up(parts: Sequence[Array], whole: Array) -> bool:
    if whole.ndim == 0 or any(part.ndim == 0 for part in parts):
        return False
    return bool(sum(part.shape[0] for part in parts) == whole.shape[0])
