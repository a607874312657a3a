"""Which axis counts samples."""

from __future__ import annotations

import pytest

from trtdeploy.config.batch_layout import find_batch
from trtdeploy.core.dtypes import DType
from trtdeploy.core.tensors import Shape, TensorSpec


@pytest.mark.parametrize(
    ("shapes", "axes", "fixed"),
    [
        ({"x": ("N", 3, "H", "W")}, {"x": 0}, None),
        ({"x": ("?0", 3, "?1", "?2")}, {"x": 0}, None),
        ({"x": ("unk__214", 2048)}, {"x": 0}, None),
        ({"tokens": ("B", "S", 16), "pos": ("S", 16)}, {"tokens": 0}, None),
        ({"input": ("batch", "time"), "state": (2, "batch", 8)}, {"input": 0, "state": 1}, None),
        ({"image": ("N", 16, 16, 3), "ids": (1,)}, {"image": 0}, None),
        ({"image": ("N", 3, 8, 8), "boxes": ("num_boxes", 4)}, {"image": 0}, None),
        ({"a": ("dyn_0", 4), "b": ("dyn_1", 4)}, {"a": 0, "b": 0}, None),
        ({"x": (1, 3, 8, 8)}, {"x": 0}, 1),
        ({"x": (1, 3, 8, 8), "flag": ()}, {"x": 0}, 1),
        ({"x": (4, 3, 8, 8), "ids": (4, 7)}, {"x": 0, "ids": 0}, 4),
        ({"x": (1, 3, "H", "W"), "out_size": (2,)}, {}, None),
        ({"x": (3, 224, 224)}, {}, None),
        ({"scalar": ()}, {}, None),
        ({"x": None}, {}, None),
    ],
)
def test_batch_axes(
    shapes: dict[str, Shape | None], axes: dict[str, int], fixed: int | None
) -> None:
    inputs = [TensorSpec(name, DType.FLOAT32, shape) for name, shape in shapes.items()]
    found = find_batch(inputs)
    assert found.inputs == axes
    assert found.fixed == fixed
