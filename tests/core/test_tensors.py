from __future__ import annotations

import pytest

from trtdeploy.core.dtypes import DType
from trtdeploy.core.tensors import Shape, TensorSpec, format_shape


@pytest.mark.parametrize(
    ("shape", "rank", "dynamic_axes", "text"),
    [
        ((1, 3, "H", "W"), 4, (2, 3), "1x3xHxW"),
        ((8, 0), 2, (), "8x0"),
        ((), 0, (), "scalar"),
        (None, None, (), "unknown rank"),
    ],
)
def test_shapes(
    shape: Shape | None, rank: int | None, dynamic_axes: tuple[int, ...], text: str
) -> None:
    spec = TensorSpec("x", DType.FLOAT32, shape)
    assert (spec.rank, spec.dynamic_axes) == (rank, dynamic_axes)
    assert spec.is_dynamic == (shape is None or bool(dynamic_axes))
    assert format_shape(shape) == text
