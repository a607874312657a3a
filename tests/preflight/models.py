"""One small flawed model per kind of finding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import FunctionProto, ModelProto, TensorProto, ValueInfoProto, helper, numpy_helper

from tests.builders import (
    BOOL,
    FLOAT,
    INT32,
    INT64,
    UINT8,
    chain,
    constant,
    model,
    op,
    random_array,
    value,
)

DOUBLE, UINT16, STRING = TensorProto.DOUBLE, TensorProto.UINT16, TensorProto.STRING
IMAGE = ("batch", 3, 8, 8)

MakeModel = Callable[[], ModelProto]


def strings(name: str, *texts: bytes) -> TensorProto:
    tensor = TensorProto(name=name, data_type=STRING, dims=[len(texts)])
    tensor.string_data.extend(texts)
    return tensor


def ints(name: str, *numbers: int) -> TensorProto:
    return constant(name, list(numbers), np.int64)


def image() -> ValueInfoProto:
    return value("x", IMAGE)


def with_versions(proto: ModelProto, *, opset: int | None = None, ir: int | None = None) -> Any:
    if opset is not None:
        proto.opset_import[0].version = opset
    if ir is not None:
        proto.ir_version = ir
    return proto


# --- operators -----------------------------------------------------------------------------------


def unknown_operators() -> ModelProto:
    """Two private operators, one of them without a name, beside other blockers."""
    nodes = [
        op("FancyWarp", "x", "a", "fancy1", domain="acme.ops"),
        op("FancyWarp", "a", "b", "", domain="acme.ops"),
        op("FastGelu", "b", "y", "fg", domain="com.microsoft"),
        op("Gather", "labels idx", "label", "lookup", axis=0),
    ]
    outputs = [value("y", ("N", 4)), value("label", (1,), STRING)]
    constants = [strings("labels", b"cat", b"dog"), ints("idx", 1)]
    domains = ("com.microsoft", "acme.ops")
    return model(nodes, [value("x")], outputs, constants, domains=domains)


def plugin_operator() -> ModelProto:
    return model([op("EfficientNMS_TRT", "x", "y", "nms")], [value("x")], [value("y", None)])


def operator_newer_than_opset() -> ModelProto:
    return model([op("Gelu", "x", "y", "gelu")], [value("x")], [value("y")], opset=17)


def removed_operator() -> ModelProto:
    nodes = [op("Upsample", "x scales", "y", "up")]
    constants = [constant("scales", [1, 1, 2, 2])]
    return model(nodes, [image()], [value("y", None)], constants, opset=17)


def decode_image() -> ModelProto:
    nodes = [op("ImageDecoder", "x", "y", "decode")]
    return model(nodes, [value("x", ("n",), UINT8)], [value("y", None, UINT8)], opset=20)


def determinant() -> ModelProto:
    return model([op("Det", "x", "y", "det")], [value("x", ("N", 4, 4))], [value("y", ("N",))])


def missing_plugin() -> ModelProto:
    return model([op("NonZero", "x", "y", "nz")], [value("x")], [value("y", None, INT64)])


def swish() -> ModelProto:
    return model([op("Swish", "x", "y", "swish")], [value("x")], [value("y")], opset=24)


def quantized_operator() -> ModelProto:
    nodes = [op("ConvInteger", "x w", "y", "conv")]
    weights = [constant("w", np.ones((2, 3, 3, 3)), np.int8)]
    return model(nodes, [value("x", IMAGE, TensorProto.INT8)], [value("y", None, INT32)], weights)


def conv_without_weights() -> ModelProto:
    return model([op("Conv", "x", "y", "conv")], [image()], [value("y", None)])


def damaged_constant() -> ModelProto:
    broken = constant("c", [1, 2, 3, 4])
    broken.raw_data = b"\0"
    return chain(["Add:c"], constants=[broken])


def recursive_function() -> ModelProto:
    body = [op("Loopy", "a", "b", "again", domain="local")]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    function = helper.make_function("local", "Loopy", ["a"], ["b"], body, opsets)
    proto = model([op("Loopy", "x", "y", domain="local")], [value("x")], [value("y")])
    proto.opset_import.append(helper.make_opsetid("local", 1))
    proto.functions.append(function)
    return proto


def local_function() -> ModelProto:
    proto = model([op("Twice", "x", "y", "call", domain="local")], [value("x")], [value("y")])
    proto.opset_import.append(helper.make_opsetid("local", 1))
    proto.functions.append(_twice())
    return proto


def _twice() -> FunctionProto:
    body = [op("Relu", "a", "t", ""), op("Neg", "t", "b", "inner")]
    return helper.make_function("local", "Twice", ["a"], ["b"], body, [helper.make_opsetid("", 17)])


# --- wiring, names, versions ---------------------------------------------------------------------


def undefined_value() -> ModelProto:
    return model([op("Add", "x ghost", "y", "add")], [value("x")], [value("y")])


def duplicate_value() -> ModelProto:
    nodes = [op("Neg", "x", "y", "one"), op("Relu", "x", "y", "two")]
    return model(nodes, [value("x")], [value("y")])


def unsorted_nodes() -> ModelProto:
    nodes = [op("Neg", "t", "y", "second"), op("Relu", "x", "t", "first")]
    return model(nodes, [value("x")], [value("y")])


def cycle() -> ModelProto:
    nodes = [op("Add", "x y", "t", "add"), op("Neg", "t", "y", "neg")]
    return model(nodes, [value("x")], [value("y")])


def duplicate_names() -> ModelProto:
    nodes = [op("Relu", "x", "t", "same"), op("Neg", "t", "y", "same")]
    return model(nodes, [value("x")], [value("y")])


def no_opset() -> ModelProto:
    proto = chain(["Relu"])
    del proto.opset_import[:]
    proto.opset_import.append(helper.make_opsetid("acme", 1))
    return proto


# --- types ---------------------------------------------------------------------------------------


def string_branch() -> ModelProto:
    nodes = [
        op("ArgMax", "x", "best", "best", axis=1, keepdims=0),
        op("Gather", "labels best", "label", "lookup", axis=0),
        op("Cast", "x", "text", "to_text", to=STRING),
        op("Relu", "x", "y", "relu"),
    ]
    outputs = [value("y"), value("label", ("N",), STRING), value("text", None, STRING)]
    names = [strings("labels", b"a", b"b", b"c", b"d")]
    return model(nodes, [value("x")], outputs, names)


def uint8_inside() -> ModelProto:
    nodes = [
        op("Greater", "x zero", "gt", "gt"),
        op("Cast", "gt", "u8", "mid_uint8", to=UINT8),
        op("Cast", "u8", "y", "mid_float", to=FLOAT),
    ]
    return model(nodes, [value("x")], [value("y")], [constant("zero", 0.0)])


def uint8_read_too_late() -> ModelProto:
    nodes = [op("Transpose", "x", "t", "turn", perm=[1, 0]), op("Cast", "t", "y", "c", to=FLOAT)]
    return model(nodes, [value("x", ("N", 4), UINT8)], [value("y", None)])


def uint16_constant() -> ModelProto:
    nodes = [op("Cast", "wide", "w", "cast", to=FLOAT), op("Mul", "x w", "y", "mul")]
    return model(nodes, [value("x")], [value("y")], [constant("wide", [1, 2, 3, 4], np.uint16)])


def doubles() -> ModelProto:
    nodes = [op("Add", "x k", "s", "add"), op("Cast", "s", "y", "narrow", to=FLOAT)]
    constants = [constant("k", [1.0], np.float64)]
    return model(nodes, [value("x", ("N", 4), DOUBLE)], [value("y")], constants)


def bool_arithmetic() -> ModelProto:
    nodes = [op("Greater", "x zero", "gt", "gt"), op("Add", "gt gt", "y", "add_flags")]
    return model(nodes, [value("x")], [value("y", None, BOOL)], [constant("zero", 0.0)])


def sequence_input() -> ModelProto:
    proto = chain(["Relu"])
    proto.graph.input.append(helper.make_tensor_sequence_value_info("many", FLOAT, None))
    return proto


def untyped_input() -> ModelProto:
    proto = chain(["Relu"])
    proto.graph.input[0].ClearField("type")
    return proto


# --- quantization --------------------------------------------------------------------------------


def quantized(
    zero_point: Any = None, *, scale: float = 0.1, between: str = "", bias: bool = False
) -> ModelProto:
    """Make ``x -> Q -> (between) -> DQ -> y``; an int32 bias comes through DequantizeLinear."""
    zero = np.int8(0) if zero_point is None else zero_point
    middle = [op(between, "q", "m", "middle")] if between else []
    nodes = [
        op("QuantizeLinear", "x s z", "q", "x_q"),
        *middle,
        op("DequantizeLinear", f"{'m' if between else 'q'} s z", "d" if bias else "y", "x_dq"),
    ]
    constants = [constant("s", scale), numpy_helper.from_array(np.asarray(zero), "z")]
    if bias:
        nodes += [op("DequantizeLinear", "bq s bz", "b", "b_dq"), op("Add", "d b", "y", "add")]
        constants += [constant("bq", [1, 2, 3, 4], np.int32), constant("bz", 0, np.int32)]
    return model(nodes, [value("x")], [value("y")], constants)


def unpaired_quantize() -> ModelProto:
    nodes = [op("QuantizeLinear", "x s z", "q", "x_q"), op("Cast", "q", "y", "cast", to=FLOAT)]
    constants = [constant("s", 0.1), constant("z", 0, np.int8)]
    return model(nodes, [value("x")], [value("y")], constants)


# --- state of the export -------------------------------------------------------------------------


def normalization(**attributes: Any) -> ModelProto:
    outputs = "y mean2 var2" if attributes.get("training_mode") else "y"
    nodes = [op("BatchNormalization", "x g b m v", outputs, "bn", **attributes)]
    constants = [constant(name, np.ones(3)) for name in "gbmv"]
    return model(nodes, [image()], [value("y", IMAGE)], constants)


def dropout(*, training: bool | None) -> ModelProto:
    nodes = [op("Dropout", "x ratio train", "y", "drop")]
    constants = [constant("ratio", 0.5)]
    inputs = [value("x")]
    if training is None:
        inputs.append(value("train", (), BOOL))
    else:
        constants.append(constant("train", training, np.bool_))
    return model(nodes, inputs, [value("y")], constants)


def random_noise() -> ModelProto:
    nodes = [op("RandomNormalLike", "x", "r", "noise"), op("Add", "x r", "y", "add")]
    return model(nodes, [value("x")], [value("y")])


def reshape_to(*sizes: int, then: str = "") -> ModelProto:
    """Make ``x [batch, 3, 8, 8] -> Reshape(sizes) -> y``."""
    last = [op(then, "r", "y", "last")] if then else []
    nodes = [op("Reshape", "x shape", "r" if then else "y", "fold"), *last]
    return model(nodes, [image()], [value("y", None)], [ints("shape", *sizes)])


def class_token() -> ModelProto:
    """Concatenate a token of batch 1 to every sample, as a ViT exported with a fixed batch does."""
    nodes = [op("Concat", "token x", "y", "prepend", axis=1)]
    token = [constant("token", np.ones((1, 1, 6)))]
    return model(nodes, [value("x", ("batch", 4, 6))], [value("y", None)], token)


def impossible_add() -> ModelProto:
    return chain(["Add:c"], constants=[constant("c", np.ones(5))])


def wrong_declaration(shape: Any, dtype: int = FLOAT) -> ModelProto:
    return model([op("Relu", "x", "y", "relu")], [value("x")], [value("y", shape, dtype)])


# --- inputs, shapes ------------------------------------------------------------------------------


def unused_input() -> ModelProto:
    return model([op("Relu", "x", "y")], [value("x"), value("meta")], [value("y")])


def shape_tensor_input() -> ModelProto:
    nodes = [
        op("Range", "r0 n_pos r1", "pos", "range"),
        op("Gather", "table pos", "rows", "lookup", axis=0),
        op("Reshape", "x size", "y", "reshape"),
    ]
    inputs = [value("x"), value("n_pos", (), INT64), value("size", (2,), INT64)]
    outputs = [value("y", None), value("rows", None)]
    constants = [constant("r0", 0, np.int64), constant("r1", 1, np.int64)]
    return model(nodes, inputs, outputs, [*constants, constant("table", random_array(64, 6))])


def float_shape_input() -> ModelProto:
    nodes = [op("Resize", "x - scales", "y", "resize")]
    return model(nodes, [image(), value("scales", (4,))], [value("y", None)])


def tied_inputs(mask_symbol: str) -> ModelProto:
    """Three inputs that must agree on two sizes, though the file may hide that."""
    nodes = [
        op("Add", "tokens pos", "h", "add_pos"),
        op("Cast", "mask", "mf", "mask_f", to=FLOAT),
        op("Unsqueeze", "mf ax2", "m3", "unsq"),
        op("Mul", "h m3", "y", "mask_mul"),
    ]
    inputs = [
        value("tokens", ("B", "S", 16)),
        value("pos", ("S", 16)),
        value("mask", ("B", mask_symbol), INT32),
    ]
    return model(nodes, inputs, [value("y", ("B", "S", 16))], [ints("ax2", 2)])


def convolution() -> ModelProto:
    nodes = [op("Conv", "x w", "c", "conv"), op("GlobalAveragePool", "c", "y", "pool")]
    weights = [constant("w", random_array(4, 3, 5, 5))]
    return model(nodes, [value("x", ("N", 3, "H", "W"))], [value("y", None)], weights)
