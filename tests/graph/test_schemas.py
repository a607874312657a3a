from __future__ import annotations

import pytest

from tests.builders import op
from trtdeploy.core.dtypes import DType
from trtdeploy.graph.schemas import find_operator_types, find_schema

FP16, BF16 = DType.FLOAT16, DType.BFLOAT16


@pytest.mark.parametrize(
    ("op_type", "opset", "slot", "dtype", "allowed"),
    [
        ("Conv", 13, 1, FP16, True),
        ("Conv", 21, 1, BF16, False),
        ("Conv", 22, 1, BF16, True),
        ("MatMul", 13, 0, BF16, True),
        ("Resize", 13, 2, FP16, False),
        ("Reshape", 13, 1, FP16, False),
        ("Concat", 13, 7, FP16, True),
        ("NonMaxSuppression", 13, 0, FP16, False),
        ("Relu", 13, 5, FP16, False),
    ],
)
def test_inputs(op_type: str, opset: int, slot: int, dtype: DType, allowed: bool) -> None:
    types = find_operator_types(op(op_type, "x", "y"), opset)
    assert types is not None
    assert types.input_allows(slot, dtype) is allowed


@pytest.mark.parametrize(
    ("op_type", "slot", "allowed"),
    [("Relu", 0, True), ("Shape", 0, False), ("Greater", 0, False), ("Split", 3, True)],
)
def test_outputs(op_type: str, slot: int, allowed: bool) -> None:
    types = find_operator_types(op(op_type, "x", "y"), 18)
    assert types is not None
    assert types.output_allows(slot, FP16) is allowed


def test_only_standard_operators_have_types() -> None:
    assert find_operator_types(op("Relu", "x", "y", domain="ai.onnx"), 17) is not None
    assert find_operator_types(op("Relu", "x", "y", domain="acme"), 17) is None
    assert find_operator_types(op("NoSuchOperator", "x", "y"), 17) is None
    assert find_schema(op("LayerNormalization", "x", "y"), 16) is None
    assert find_schema(op("Relu", "x", "y"), 90) is not None
    assert find_schema(op("Relu", "x", "y"), 0) is None
