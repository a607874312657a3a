"""Where the batch flows: shapes of every value at two batch sizes, side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from trtdeploy.config.batch_layout import BatchLayout
from trtdeploy.export.onnx.sizes import choose_shapes
from trtdeploy.graph.model import OnnxModel
from trtdeploy.preflight.inference import InferenceStructure, Sizes

Known = tuple[int, ...]

_FACTOR = 97
"""The larger batch is this many times the smaller one. A prime that no model has for a size: an
axis that grew by it is the batch."""


@dataclass(frozen=True)
class Growth:
    """A value that grows along one axis: its shapes at the exported and at the larger batch."""

    small: Known
    large: Known
    axis: int


class BatchFlow:
    """Shapes of a normalized model at two batches, the other dynamic axes having given sizes.

    Attributes:
        small: At the batch that the file was exported with.
        large: At the larger batch.
    """

    def __init__(self, model: OnnxModel, batch: BatchLayout, sizes: Mapping[str, int]) -> None:
        structure = InferenceStructure(model)
        inputs = model.input_specs()
        at = dict.fromkeys(batch.symbols, batch.exported)
        small = choose_shapes(inputs, {**sizes, **at})
        large = choose_shapes(inputs, {**sizes, **dict.fromkeys(at, batch.exported * _FACTOR)})
        self.small = structure.infer(Sizes(small))
        self.large = structure.infer(Sizes(large))

    def growth_of(self, name: str) -> Growth | None:
        """Return how a value grows; None when it does not, or in a way that is not clear."""
        small, large = self.small.known_shape_of(name), self.large.known_shape_of(name)
        if small is None or large is None or len(small) != len(large):
            return None
        grown = [a for a, pair in enumerate(zip(small, large, strict=True)) if pair[0] != pair[1]]
        if len(grown) != 1 or large[grown[0]] != small[grown[0]] * _FACTOR:
            return None
        return Growth(small, large, grown[0])

    def is_constant(self, name: str) -> bool:
        """True when a value has one known shape at both batches."""
        small = self.small.known_shape_of(name)
        return small is not None and small == self.large.known_shape_of(name)


def list_batch_axes(before: Growth, after: Known, batch: int) -> list[int]:
    """Return the axes that may hold the batch after a Reshape, the likeliest first.

    Elements keep their order in memory, so what lies outside the batch before the Reshape lies
    outside of it afterwards. A batch of 1 leaves choices: ``10 x 1 x 32`` to ``10 x 32`` may put
    it in front of the 32 or behind the 10. An axis of exactly the batch is likelier than one that
    the batch is multiplied into, and the front of an axis is likelier than its end.

    Args:
        before: The operand; where the batch lies inside its growing axis is not known.
        after: Shape of the result at the smaller batch.
        batch: The smaller one, at which ``after`` holds.
    """
    outer = math.prod(before.small[: before.axis])
    widest = outer * (before.small[before.axis] // batch)
    starts = [math.prod(after[:axis]) for axis in range(len(after))]
    inside = [
        axis
        for axis, size in enumerate(after)
        if size % batch == 0 and starts[axis] <= widest and starts[axis] * size // batch >= outer
    ]
    return sorted(inside, key=lambda axis: (after[axis] != batch, starts[axis] != outer, axis))


def grow(shape: Known, axis: int) -> Known:
    """Return ``shape`` at the larger batch when ``axis`` holds it."""
    return tuple(size * _FACTOR if a == axis else size for a, size in enumerate(shape))
