from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, shape_inference

from tests.builders import constant, model, op, value
from trtdeploy.graph.shape_inference import infer_with_values


def test_contents_are_followed() -> None:
    proto = model(
        [op("Mul", "a b", "s"), op("ConstantOfShape", "s", "y")],
        [value("x")],
        [value("y", shape=None)],
        [constant("a", [2, 3], np.int64), constant("b", [2, 2], np.int64)],
    )
    dims = infer_with_values(proto).graph.output[0].type.tensor_type.shape.dim
    assert [dim.dim_value for dim in dims] == [4, 6]


@pytest.mark.parametrize("strict", [False, True])
def test_a_huge_value_is_never_followed(strict: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    infer = shape_inference.infer_shapes

    def note(*args: object, **options: object) -> object:
        asked.append(options.get("data_prop", False))
        return infer(*args, **options)

    monkeypatch.setattr(shape_inference, "infer_shapes", note)
    proto = model(
        [op("ConstantOfShape", "s", "h"), op("Mul", "h h", "y")],
        [value("x")],
        [value("y", dtype=TensorProto.FLOAT, shape=None)],
        [constant("s", [1 << 40], np.int64)],
    )
    inferred = infer_with_values(proto, strict=strict)
    assert asked == [False]
    assert inferred.graph.value_info[0].type.tensor_type.shape.dim[0].dim_value == 1 << 40
