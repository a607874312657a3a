"""The batch axis: how feeds are cut along it, and what outputs of its parts add up to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from trtdeploy.config.batch_layout import BatchLayout
from trtdeploy.core.arrays import Array, Feeds, Outputs


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


def join_parts(parts: Sequence[Outputs], whole: Outputs, layout: BatchLayout) -> list[Outputs]:
    """Return what the outputs of the whole batch should be, given those of its parts.

    An output that declares the batch symbol is the parts' outputs one after the other. So is one
    that does not, along the first axis where the sizes add up. Any other does not depend on the
    batch: then it must be what each part alone gives, and there is one answer for each part.

    Args:
        parts: Outputs of each part, same names.
        whole: Outputs of the whole batch, for their shapes.
        layout: Where the batch is.
    """
    joined = {
        name: _join([part[name] for part in parts], array.shape, layout.outputs.get(name))
        for name, array in whole.items()
    }
    answers = max(map(len, joined.values()), default=0)
    return [
        {name: arrays[min(number, len(arrays) - 1)] for name, arrays in joined.items()}
        for number in range(answers)
    ]


def _join(parts: list[Array], whole: tuple[int, ...], declared: int | None) -> list[Array]:
    axes = range(len(whole)) if declared is None else (declared,)
    for axis in axes:
        if _adds_up([part.shape for part in parts], whole, axis):
            return [np.concatenate(parts, axis=axis)]
    return parts


def _adds_up(parts: Sequence[tuple[int, ...]], whole: tuple[int, ...], axis: int) -> bool:
    if any(len(part) != len(whole) for part in parts):
        return False
    total = sum(part[axis] for part in parts)
    return all((*part[:axis], total, *part[axis + 1 :]) == whole for part in parts)
