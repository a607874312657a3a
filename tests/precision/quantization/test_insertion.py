from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper

from tests.builders import constant, in_memory, model, op, random_array, value
from tests.precision.quantized_models import (
    DQ,
    Q,
    axis_of,
    conv,
    conv_weight,
    image_feeds,
    image_model,
    pair_of,
    quantize,
    run_plainly,
    scale_of,
)
from trtdeploy.config.recipe import RECIPES
from trtdeploy.core.errors import InputError, UsageError
from trtdeploy.precision.typed_model import apply_recipe
from trtdeploy.precision.typing_options import TypingOptions

CODES = {"int8": TensorProto.INT8, "int8-fp32": TensorProto.INT8, "fp8": TensorProto.FLOAT8E4M3FN}
LARGEST = {"int8": 127.0, "int8-fp32": 127.0, "fp8": 448.0}
CHAIN = image_model([conv("x w", "c"), op("Relu", "c", "r"), conv("r w", "y")],
                    [conv_weight("w", 16, 16)])  # fmt: skip


@pytest.mark.parametrize("recipe", CODES)
def test_scales_cover_amax(recipe: str, tmp_path: Path) -> None:
    found = quantize(CHAIN, tmp_path, image_feeds(), recipe, amax={"x": 3.3, "r": 0.7})
    for name, amax in (("c", 3.3), ("y", 0.7)):
        step = float(scale_of(found.proto, name)) * LARGEST[recipe]
        assert amax <= step <= amax * 1.001
    types = {t.name: t.data_type for t in found.proto.graph.initializer}
    for node in found.proto.graph.node:
        if node.op_type in (Q, DQ):
            assert types[node.input[2]] == CODES[recipe]
            low = (
                TensorProto.FLOAT
                if recipe == "int8-fp32" or node.input[0] == "x"
                else (TensorProto.FLOAT16)
            )  # what reads an FP32 input is FP32 itself: no Cast stands before it
            assert types[node.input[1]] == low
    written = [a for node in found.proto.graph.node for a in node.attribute if node.op_type == Q]
    assert not written  # FP8 saturates by default


def test_names_tell_what_is_quantized(tmp_path: Path) -> None:
    found = quantize(CHAIN, tmp_path, image_feeds())
    names = [node.name for node in found.proto.graph.node if node.op_type in (Q, DQ)]
    assert names == [
        "x_quantize", "x_dequantize", "w_dequantize", "r_quantize", "r_dequantize",
        "w_dequantize_2",
    ]  # fmt: skip
    assert [node.name for node in found.proto.graph.node if node.op_type == "Conv"] == ["c", "y"]


def test_taken_names_are_avoided(tmp_path: Path) -> None:
    nodes = [
        conv("x w", "x_quantized", "x_quantize"),
        op("Relu", "x_quantized", "x_dequantized"),
        conv("x_dequantized w", "y"),
    ]
    proto = image_model(nodes, [conv_weight("w", 16, 16)])
    assert len(quantize(proto, tmp_path, image_feeds()).plan.operands) == 2


def test_a_weight_is_stored_once_per_axis(tmp_path: Path) -> None:
    nodes = [
        op("Gemm", "x w", "a", transB=1), op("Gemm", "x w", "b"), op("MatMul", "x w", "c"),
        op("Sum", "a b c", "y"),
    ]  # fmt: skip
    proto = model(nodes, [value("x", (4, 4))], [value("y", (4, 4))],
                  [constant("w", random_array(4, 4))])  # fmt: skip
    found = quantize(proto, tmp_path, {"x": random_array(4, 4, seed=1)})
    stored = [pair_of(found.proto, name, 1).input[0] for name in "abc"]
    assert [axis_of(pair_of(found.proto, name, 1)) for name in "abc"] == [0, 1, 1]
    assert stored[0] != stored[1] == stored[2]
    assert "w" not in {tensor.name for tensor in found.proto.graph.initializer}


def test_biases_stay_in_floating_point(tmp_path: Path) -> None:
    proto = image_model([conv("x w b", "y")], [conv_weight("w", 16, 16), constant("b", [0.5] * 16)])
    found = quantize(proto, tmp_path, image_feeds())
    bias = next(t for t in found.proto.graph.initializer if t.name == "b_fp16")
    np.testing.assert_array_equal(numpy_helper.to_array(bias), np.float16(0.5))


def test_large_weights_stay_on_the_disk(tmp_path: Path) -> None:
    proto = model([op("MatMul", "x w", "y")], [value("x", ("N", 96))], [value("y", ("N", 64))],
                  [constant("w", random_array(96, 64))])  # fmt: skip
    feeds = {"x": random_array(3, 96, seed=1)}
    found = quantize(proto, tmp_path, feeds, "int8-fp32")
    assert [weight.stored_as.label for weight in found.typed.model.weights.values()] == ["int8"]
    exact, rounded = run_plainly(proto, feeds)[0], run_plainly(found.proto, feeds)[0]
    assert 0 < np.abs(exact - rounded).max() < 0.03 * np.abs(exact).max()


def test_amax_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match="int8 needs a calibration: the ranges of 2 values"
    ) as info:
        apply_recipe(in_memory(CHAIN), TypingOptions(RECIPES["int8"]))
    assert "--calib" in info.value.hint
    with pytest.raises(InputError, match="no amax for 'r'"):
        apply_recipe(in_memory(CHAIN), TypingOptions(RECIPES["int8"], amax={"x": 1.0}))


def test_a_model_without_layers_needs_none(tmp_path: Path) -> None:
    proto = model([op("Relu", "x", "y")], [value("x")], [value("y")])
    typed = apply_recipe(in_memory(proto), TypingOptions(RECIPES["int8"]))
    assert typed.quantization is not None
    assert typed.quantization.is_empty


def test_the_given_model_is_not_changed(tmp_path: Path) -> None:
    given = in_memory(CHAIN)
    before = given.proto.SerializeToString(deterministic=True)
    apply_recipe(given, TypingOptions(RECIPES["int8"], amax={"x": 1.0, "r": 1.0}))
    assert given.proto.SerializeToString(deterministic=True) == before
