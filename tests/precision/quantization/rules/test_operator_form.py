from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

from tests.builders import FLOAT16, constant, model, op, value
from tests.precision.layer_rule_runs import find_kept_layers
from trtdeploy.precision.quantization.rules.operator_form import KeepOperatorFormRule

CASES = [
    ("Gemm", "x h", np.eye(4, dtype=np.float32), "its weight is not a constant"),
    ("MatMul", "x v", np.eye(4, dtype=np.float32), ""),
    ("MatMul", "v w", np.eye(4, dtype=np.float32), ""),
    ("MatMul", "w w", np.eye(4, dtype=np.float32), "both operands are constants"),
    ("Gemm", "x w", np.zeros((4, 0), np.float32), "its weight 'w' is empty"),
    ("Conv", "w x", np.ones((1, 1, 4), np.float32), "its data is a constant and its weight is not"),
]


@pytest.mark.parametrize(("op_type", "operands", "weight", "said"), CASES)
def test_obstacles(op_type: str, operands: str, weight: object, said: str) -> None:
    nodes = [op("Relu", "x", "h"), op("Relu", "x", "v"), op(op_type, operands, "y", "layer")]
    weights: list[TensorProto] = [constant("w", weight)]
    shape = ("N", 1, 4) if op_type == "Conv" else ("N", 4)
    proto = model(nodes, [value("x", shape)], [value("y", None)], weights)
    kept = find_kept_layers(KeepOperatorFormRule(), proto)
    assert kept == ({"layer": said} if said else {})


def test_other_types_are_named() -> None:
    proto = model(
        [op("MatMul", "x w", "y")],
        [value("x", dtype=FLOAT16)],
        [value("y", dtype=FLOAT16)],
        [constant("w", np.eye(4), np.float16)],
    )
    assert find_kept_layers(KeepOperatorFormRule(), proto) == {
        "y": "its operand 'x' is float16, not float32"
    }
