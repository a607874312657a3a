from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto

from tests.builders import constant, model, op, value
from tests.precision.rule_runs import find_kept
from trtdeploy.precision.rules.quantization_scale import KeepQuantizationScaleRule

RULE = KeepQuantizationScaleRule()


def pair(scale: float) -> ModelProto:
    nodes = [op("QuantizeLinear", "x s", "q"), op("DequantizeLinear", "q s", "d")]
    nodes.append(op("Relu", "d", "y"))
    return model(nodes, [value("x")], [value("y")], [constant("s", scale)], opset=19)


@pytest.mark.parametrize(
    ("scale", "recipe", "kept"),
    [
        (0.02, "fp16", False),
        (0.0123456, "fp16", False),  # a normal FP16 number is off by 2^-11 at most
        (1.45e-5, "fp16", False),  # a subnormal one by more
        (1.234e-6, "fp16", True),  # until it matters
        (2.0**-20, "fp16", False),  # unless it is one
        (1e5, "fp16", True),
        (0.0123456, "bf16", False),  # 8 bits are enough
        (2.0**-100, "bf16", False),
    ],
)
def test_a_scale_must_survive_the_rounding(scale: float, recipe: str, kept: bool) -> None:
    assert find_kept(RULE, pair(scale), recipe).keys() == ({"q", "d"} if kept else set())


def test_the_reason_names_the_scale() -> None:
    assert find_kept(RULE, pair(1.234e-6))["q"] == (
        "its scale 's' holds 1.234e-06, which float16 has only roughly"
    )


def test_one_bad_channel_is_enough() -> None:
    proto = model(
        [op("DequantizeLinear", "w s", "d", axis=0), op("MatMul", "x d", "y")],
        [value("x")],
        [value("y")],
        [constant("w", np.eye(4), np.int8), constant("s", [1.0, 0.1, 1e-7, 2.0])],
        opset=19,
    )
    assert find_kept(RULE, proto).keys() == {"d"}


def test_a_computed_scale_is_not_known() -> None:
    proto = model(
        [op("ReduceMax", "x", "s", keepdims=0), op("QuantizeLinear", "x s", "y")],
        [value("x")],
        [value("y", dtype=2)],
    )
    assert "is computed" in find_kept(RULE, proto)["y"]


def test_other_nodes_are_free() -> None:
    proto = model([op("Mul", "x s", "y")], [value("x")], [value("y")], [constant("s", 1e-7)])
    assert not find_kept(RULE, proto)
