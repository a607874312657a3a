"""Public problems with quantized models, each as a model of our own and the right result."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper

from tests.builders import constant, model, op, random_array, value
from tests.precision.quantized_models import (
    axis_of,
    compile_for_rtx,
    conv,
    dequantized_slots,
    measure_snr_db,
    pair_of,
    quantize,
    scale_of,
)


def dead_channel() -> ModelProto:
    """A channel without weights, an activation that is always 0, and an Add of two branches."""
    first = random_array(8, 3, 3, 3, seed=1, scale=0.3)
    first[5] = 0
    bias = random_array(8, seed=2, scale=0.1)
    bias[5] = 0
    nodes = [
        conv("x w0 b0", "c0"),
        op("Relu", "c0", "r0"),
        op("Sub", "r0 hundred", "s"),
        op("Relu", "s", "z"),
        conv("z w1", "c1"),
        conv("r0 w2", "c2"),
        op("Add", "c1 c2", "a"),
        op("GlobalAveragePool", "a", "gap"),
        op("Flatten", "gap", "y"),
    ]
    constants = [
        constant("w0", first),
        constant("b0", bias),
        constant("hundred", 100.0),
        constant("w1", random_array(4, 8, 3, 3, seed=3, scale=0.2)),
        constant("w2", random_array(4, 8, 3, 3, seed=4, scale=0.2)),
    ]
    return model(nodes, [value("x", ("N", 3, 16, 16))], [value("y", ("N", 4))], constants)


@pytest.mark.parametrize("recipe", ["int8", "int8-fp32", "fp8"])
def test_dead_channels_and_constant_zeros(recipe: str, tmp_path: Path) -> None:
    proto, feeds = dead_channel(), {"x": random_array(12, 3, 16, 16, seed=9)}
    quantized = quantize(proto, tmp_path, feeds, recipe)
    weight = pair_of(quantized.proto, "c0", 1)
    stored = next(t for t in quantized.proto.graph.initializer if t.name == weight.input[0])
    values = numpy_helper.to_array(stored).astype(np.float32)
    assert values[4].any()
    assert not values[5].any()  # dequantizes to exactly 0 with the positive scale it has
    assert (scale_of(quantized.proto, "c0", 1) > 6e-8).all()
    assert scale_of(quantized.proto, "c1") > 0
    assert measure_snr_db(proto, quantized, feeds) > (30 if recipe == "fp8" else 35)
    assert compile_for_rtx(quantized.proto, feeds) == ""


def spread_channels() -> ModelProto:
    """ConvTranspose whose output channels differ 1000x, then one with two groups."""
    spread = np.logspace(-2, 1, 8, dtype=np.float32)
    first = random_array(4, 8, 3, 3, seed=1) * spread[None, :, None, None]
    up = {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}
    nodes = [
        op("ConvTranspose", "x w1 b1", "t1", "up1", **up),
        op("Div", "t1 spread", "n1"),
        op("Relu", "n1", "r1"),
        op("ConvTranspose", "r1 w2", "y", "up2_group", strides=[2, 2], group=2),
    ]
    constants = [
        constant("w1", first),
        constant("b1", random_array(8, seed=2, scale=0.1) * spread),
        constant("spread", spread.reshape(1, 8, 1, 1)),
        constant("w2", random_array(8, 3, 2, 2, seed=3, scale=0.3)),
    ]
    inputs = [value("x", ("N", 4, 8, 8))]
    return model(nodes, inputs, [value("y", ("N", 6, 32, 32))], constants)


def test_transposed_convolutions_are_scaled_by_output_channel(tmp_path: Path) -> None:
    proto, feeds = spread_channels(), {"x": random_array(4, 4, 8, 8, seed=9)}
    quantized = quantize(proto, tmp_path, feeds)
    assert axis_of(pair_of(quantized.proto, "up1", 1)) == 1
    assert scale_of(quantized.proto, "up1", 1).shape == (8,)
    assert scale_of(quantized.proto, "up2_group", 1).shape == ()
    assert "repeats 2x" in quantized.plan.layers["up2_group"].reason
    assert measure_snr_db(proto, quantized, feeds) > 30
    assert compile_for_rtx(quantized.proto, feeds) == ""


def residual_blocks() -> ModelProto:
    """Two residual blocks, one with an identity skip and one with a 1x1 convolution on it."""
    sizes = {
        "stem": (16, 3, 3), "a1": (16, 16, 3), "a2": (16, 16, 3),
        "b1": (32, 16, 3), "b2": (32, 32, 3), "down": (32, 16, 1),
    }  # fmt: skip
    half = {"strides": [2, 2]}
    nodes = [
        conv("x stem_w stem_b", "stem"),
        op("Relu", "stem", "s0"),
        conv("s0 a1_w a1_b", "a1"),
        op("Relu", "a1", "a1r"),
        conv("a1r a2_w a2_b", "a2"),
        op("Add", "a2 s0", "sum1", "add_identity"),
        op("Relu", "sum1", "s1"),
        conv("s1 b1_w b1_b", "b1", **half),
        op("Relu", "b1", "b1r"),
        conv("b1r b2_w b2_b", "b2"),
        conv("s1 down_w down_b", "down", pads=[0] * 4, **half),
        op("Add", "down b2", "sum2", "add_downsample"),
        op("Relu", "sum2", "s2"),
        op("GlobalAveragePool", "s2", "gap"),
        op("Flatten", "gap", "fl"),
        op("Gemm", "fl fc_w fc_b", "logits", "fc", transB=1),
    ]
    rng = np.random.default_rng(111)
    constants = []
    for name, (out, inside, size) in sizes.items():
        spread = np.sqrt(2 / (inside * size * size))
        constants.append(constant(f"{name}_w", rng.normal(0, spread, (out, inside, size, size))))
        constants.append(constant(f"{name}_b", rng.normal(0, 0.1, out)))
    constants.append(constant("fc_w", rng.normal(0, 0.2, (10, 32))))
    constants.append(constant("fc_b", np.zeros(10)))
    inputs = [value("x", ("N", 3, 32, 32))]
    return model(nodes, inputs, [value("logits", ("N", 10))], constants)


def test_residual_adds_read_the_skip_branch_in_8_bits(tmp_path: Path) -> None:
    proto, feeds = residual_blocks(), {"x": random_array(8, 3, 32, 32, seed=9)}
    quantized = quantize(proto, tmp_path, feeds)
    assert dequantized_slots(quantized.proto, "add_identity") == [1]
    assert dequantized_slots(quantized.proto, "add_downsample") == [0]
    skip, read = pair_of(quantized.proto, "add_identity", 1), pair_of(quantized.proto, "a1")
    assert skip.name == read.name  # one pair, so one scale, for both readers of s0
    relu = next(node for node in quantized.proto.graph.node if node.name == "s0")
    assert list(relu.input) == ["stem"]
    for name in ("stem", "a1", "a2", "b1", "b2", "down", "fc"):
        assert scale_of(quantized.proto, name, 1).ndim == 1
    assert measure_snr_db(proto, quantized, feeds) > 35
    assert compile_for_rtx(quantized.proto, feeds) == ""


def old_opset() -> ModelProto:
    """Opset 11 and IR 6 with axes in attributes, Dropout, and the Softmax of then."""
    spread = np.logspace(-2, 0, 8, dtype=np.float32)
    nodes = [
        op("Unsqueeze", "x", "x4", axes=[1]),
        conv("x4 w", "c"),
        op("Clip", "c lo hi", "cl"),
        op("ReduceSum", "cl", "rs", axes=[2, 3], keepdims=1),
        op("Squeeze", "rs", "sq", axes=[2, 3]),
        op("Softmax", "sq", "sm", axis=1),
        op("Dropout", "sm", "dr", ratio=0.5),
        op("Gemm", "dr wf bf", "y", "fc", transB=1),
    ]
    constants = [
        constant("w", random_array(8, 1, 3, 3, seed=1) * spread[:, None, None, None]),
        constant("lo", -1.0),
        constant("hi", 1.0),
        constant("wf", random_array(5, 8, seed=2)),
        constant("bf", random_array(5, seed=3, scale=0.1)),
    ]
    inputs = [value("x", ("N", 12, 12))]
    return model(nodes, inputs, [value("y", ("N", 5))], constants, opset=11)


@pytest.mark.parametrize(
    ("recipe", "opset", "least_ir"), [("int8", 19, 9), ("int8-fp32", 13, 7), ("fp8", 19, 9)]
)
def test_old_files_are_raised_to_what_the_recipe_needs(
    recipe: str, opset: int, least_ir: int, tmp_path: Path
) -> None:
    proto, feeds = old_opset(), {"x": random_array(8, 12, 12, seed=9)}
    quantized = quantize(proto, tmp_path, feeds, recipe)
    assert quantized.typed.model.opset == opset
    assert quantized.proto.ir_version >= least_ir
    assert f"opset raised from 11 to {opset}" in quantized.typed.model.changes
    assert axis_of(pair_of(quantized.proto, "c", 1)) == 0
    assert measure_snr_db(proto, quantized, feeds) > (20 if recipe == "fp8" else 30)
    assert compile_for_rtx(quantized.proto, feeds) == ""
