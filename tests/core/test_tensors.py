from __future__ import annotations

import pytest

from trtdeploy.core.dtypes import DType
from trtdeploy.core.tensors import Shape, TensorSpec, format_shape


@pytest.mark.parametrize(
    ("shape", "rank", "dynamic_axes", "is_dynamic", "text"),
    [
        ((1, 3, "H", "W"), 4, (2, 3), True, "1x3xHxW"),
        ((8, 0), 2, (), False, "8x0"),
        ((), 0, (), False, "scalar"),
        (None, None, (), True, "unknown rank"),
    ],
)
def test_shapes(
    shape: Shape | None, rank: int | None, dynamic_axes: tuple[int, ...], is_dynamic: bool, text: str
) -> None:
    spec = TensorSpec("x", DType.FLOAT32, shape)
    assert (spec.rank, spec.dynamic_axes, spec.is_dynamic) == (rank, dynamic_axes, is_dynamic)
    assert format_shape(shape) == text
