"""Pre-quantized models: they have Q/DQ pairs of their own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto

from tests.builders import FLOAT16, constant, count_ops, model, op, random_array, value
from tests.precision.quantized_models import compile_for_rtx, name_quantized, run_plainly
from tests.precision.typed_models import operand_types, type_model
from trtdeploy.core.dtypes import DType

FP16, FP32 = DType.FLOAT16, DType.FLOAT32
FEEDS = {"x": random_array(1, 3, 8, 8, seed=5)}


def prequantized(*, int32_bias: bool = False, x_scale: float = 0.03, opset: int = 17) -> ModelProto:
    """A quantized Conv, and one that the tool which made the file left alone."""
    weight = random_array(6, 3, 3, 3, scale=0.3)
    steps = (np.abs(weight).reshape(6, -1).max(1) / 127).astype(np.float32)
    nodes = [
        op("QuantizeLinear", "x xs xz", "xq"),
        op("DequantizeLinear", "xq xs xz", "xd"),
        op("DequantizeLinear", "wq ws wz", "wd", axis=0),
        op("Conv", "xd wd b", "c"),
        op("Relu", "c", "r"),
        op("Conv", "r v", "y", "left"),
    ]
    constants = [
        constant("xs", x_scale), constant("xz", 0, np.int8),
        constant("wq", np.rint(weight / steps[:, None, None, None]), np.int8),
        constant("ws", steps), constant("wz", np.zeros(6), np.int8),
        constant("v", random_array(4, 6, 1, 1)),
    ]  # fmt: skip
    bias = random_array(6, scale=0.5)
    if int32_bias:
        nodes.insert(3, op("DequantizeLinear", "bq bs", "b", axis=0))
        constants += [
            constant("bq", np.rint(bias / (x_scale * steps)), np.int32),
            constant("bs", x_scale * steps),
        ]
    else:
        constants.append(constant("b", bias))
    inputs, outputs = [value("x", (1, 3, 8, 8))], [value("y", (1, 4, 6, 6))]
    return model(nodes, inputs, outputs, constants, opset=opset)


@pytest.mark.parametrize("recipe", ["int8", "fp8", "fp16"])
@pytest.mark.parametrize("int32_bias", [False, True])
def test_pairs_are_kept_and_typed_like_their_layer(
    recipe: str, int32_bias: bool, tmp_path: Path
) -> None:
    typed, result = type_model(prequantized(int32_bias=int32_bias), tmp_path, recipe)
    assert (count_ops(result, "QuantizeLinear"), count_ops(result, "DequantizeLinear")) == (1, 2)
    assert typed.model.opset == 19
    assert operand_types(result, "c") == [FP16, FP16, FP16]
    assert count_ops(result, "Cast") == 1  # of the output
    assert typed.plan.summarize().counts == {"int8": 1, "float16": 2}
    assert typed.plan.quantized["c"].reason == "pre-quantized: the model has 'xd' in front of it"
    exact, found = (
        run_plainly(prequantized(int32_bias=int32_bias), FEEDS),
        run_plainly(result, FEEDS),
    )
    np.testing.assert_allclose(found[0], exact[0], atol=5e-3 * np.abs(exact[0]).max())
    assert compile_for_rtx(result, FEEDS) == ""


def test_nothing_is_quantized_twice(tmp_path: Path) -> None:
    typed, _ = type_model(prequantized(), tmp_path, "int8")
    plan = typed.quantization
    assert plan is not None
    assert plan.is_empty
    assert name_quantized(plan) == {"c": "int8"}
    assert "not quantized twice" in plan.layers["left"].reason
    assert plan.notes == (
        "the model is pre-quantized: 1 of 2 layers are quantized by Q/DQ pairs of its own, and "
        "nothing is added",
    )


@pytest.mark.parametrize("recipe", ["fp32", "tf32", "int8-fp32"])
def test_fp32_recipes_leave_the_opset_alone(recipe: str, tmp_path: Path) -> None:
    typed, result = type_model(prequantized(), tmp_path, recipe)
    assert typed.model.opset == 17
    assert operand_types(result, "c") == [FP32, FP32, FP32]
    np.testing.assert_array_equal(
        run_plainly(result, FEEDS)[0], run_plainly(prequantized(), FEEDS)[0]
    )


def test_a_scale_that_fp16_lacks_keeps_its_pair_in_fp32(tmp_path: Path) -> None:
    typed, result = type_model(prequantized(x_scale=1.234e-6), tmp_path)
    assert operand_types(result, "xd") == [DType.INT8, FP32, DType.INT8]
    assert operand_types(result, "c") == [FP16, FP16, FP16]
    assert typed.plan.nodes["xd"].rule == "KeepQuantizationScaleRule"


def test_weights_alone_in_8_bits_are_left_and_the_rest_is_quantized(tmp_path: Path) -> None:
    proto = model(
        [
            op("DequantizeLinear", "w s", "wd"),
            op("MatMul", "x wd", "h", "only_weights"),
            op("Relu", "h", "r"),
            op("MatMul", "r v", "y", "free"),
        ],
        [value("x")],
        [value("y")],
        [constant("w", np.eye(4), np.int8), constant("s", 0.5), constant("v", random_array(4, 4))],
    )
    typed, result = type_model(proto, tmp_path, "int8", amax={"r": 1.0})
    plan = typed.quantization
    assert plan is not None
    assert "not one 8-bit type for all" in plan.layers["only_weights"].reason
    assert name_quantized(plan) == {"free": "int8"}
    assert count_ops(result, "QuantizeLinear") == 1
    assert plan.notes == ("the model has pre-quantized weights: 1 layers are left as they are",)


def test_narrow_pairs_stay_as_they_are(tmp_path: Path) -> None:
    nodes = [
        op("Cast", "x", "h", to=FLOAT16),
        op("QuantizeLinear", "h s z", "q"),
        op("DequantizeLinear", "q s z", "d"),
        op("Cast", "d", "y", to=1),
    ]
    constants = [constant("s", 0.5, np.float16), constant("z", 0, np.int8)]
    proto = model(nodes, [value("x")], [value("y")], constants, opset=19)
    _, result = type_model(proto, tmp_path)
    assert operand_types(result, "q") == [FP16, FP16, DType.INT8]
