"""Quantized graphs of one flaw each, for the audit."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper

from tests.builders import FLOAT, FLOAT16, constant, model, op, random_array, value

INT8, E4M3 = TensorProto.INT8, TensorProto.FLOAT8E4M3FN


class GraphWriter:
    """Collects nodes and constants; every method returns the value it makes."""

    def __init__(self, dtype: int = INT8) -> None:
        self.nodes: list[NodeProto] = []
        self.constants: list[Any] = [helper.make_tensor("z", dtype, (), [0])]
        self.dtype = dtype

    def scale(self, size: float) -> str:
        name = f"s{size}"
        if name not in {found.name for found in self.constants}:
            self.constants.append(constant(name, size))
        return name

    def quantized(self, source: str, size: float = 0.1) -> str:
        scale = self.scale(size)
        made = f"{source}_d"
        self.nodes += [
            op("QuantizeLinear", f"{source} {scale} z", f"{source}_q"),
            op("DequantizeLinear", f"{source}_q {scale} z", made),
        ]
        return made

    def weight(self, name: str, shape: tuple[int, ...], axis: int | None = None) -> str:
        numbers = random_array(*shape).clip(-1, 1) * 100
        count = 1 if axis is None else shape[axis]
        self.constants += [
            helper.make_tensor(f"{name}_q", self.dtype, shape, numbers.astype(np.int8).ravel()),
            constant(f"{name}_s", np.full(() if axis is None else (count,), 0.01)),
        ]
        where = {} if axis is None else {"axis": axis}
        zeros = helper.make_tensor(
            f"{name}_z", self.dtype, () if axis is None else (count,), [0] * count
        )
        self.constants.append(zeros)
        self.nodes.append(
            op("DequantizeLinear", f"{name}_q {name}_s {name}_z", f"{name}_d", **where)
        )
        return f"{name}_d"

    def node(self, op_type: str, operands: str, result: str, **attributes: Any) -> str:
        self.nodes.append(op(op_type, operands, result, **attributes))
        return result

    def convolution(self, source: str, name: str, *, axis: int | None = 0) -> str:
        """Make a quantized 3x3 convolution of 8 channels that keeps the size."""
        weight = self.weight(f"{name}_w", (8, 8, 3, 3), axis)
        return self.node("Conv", f"{self.quantized(source)} {weight}", name, pads=[1] * 4)

    def finish(
        self, result: str, shape: Any = (1, 8, 8, 8), dtype: int = FLOAT, *, opset: int = 19
    ) -> ModelProto:
        return model(
            self.nodes,
            [value("x", shape, dtype)],
            [value(result, None, dtype)],
            self.constants,
            opset=opset,
        )


def two_convolutions(dtype: int = INT8) -> ModelProto:
    writer = GraphWriter(dtype)
    first = writer.node("Relu", writer.convolution("x", "c1"), "r1")
    return writer.finish(writer.node("Relu", writer.convolution(first, "c2"), "y"))


def cast_between() -> ModelProto:
    """FP32 pairs, then a Cast, in front of an FP16 layer, as converters of Q/DQ files leave it."""
    writer = GraphWriter()
    data = writer.node("Cast", writer.quantized("x"), "x16", to=FLOAT16)
    weight = writer.node("Cast", writer.weight("w", (8, 8, 3, 3), 0), "w16", to=FLOAT16)
    made = writer.node("Conv", f"{data} {weight}", "c")
    return writer.finish(writer.node("Cast", made, "y", to=FLOAT))


def arithmetic_between() -> ModelProto:
    writer = GraphWriter()
    writer.constants.append(constant("half", 0.5))
    data = writer.node("Mul", f"{writer.quantized('x')} half", "scaled")
    return writer.finish(writer.node("Conv", f"{data} {writer.weight('w', (8, 8, 3, 3), 0)}", "y"))


def weight_only() -> ModelProto:
    writer = GraphWriter()
    return writer.finish(writer.node("Conv", f"x {writer.weight('w', (8, 8, 3, 3), 0)}", "y"))


def wrong_axis(op_type: str, axis: int, **attributes: Any) -> ModelProto:
    """Make a layer whose weight has its scales along ``axis``; the right ones are none."""
    shapes = {"Conv": (8, 8, 3, 3), "ConvTranspose": (8, 4, 2, 2)}
    writer = GraphWriter()
    weight = writer.weight("w", shapes.get(op_type, (8, 6)), axis)
    shape = (1, 8, 8, 8) if op_type in shapes else (4, 8)
    data = writer.quantized("x")
    return writer.finish(writer.node(op_type, f"{data} {weight}", "y", **attributes), shape)


def turned_weight(axis: int) -> ModelProto:
    """Make ``MatMul(x, Transpose(DQ(w)))``, as exporters write a linear layer."""
    writer = GraphWriter()
    weight = writer.node("Transpose", writer.weight("w", (6, 8), axis), "turned", perm=[1, 0])
    return writer.finish(writer.node("MatMul", f"{writer.quantized('x')} {weight}", "y"), (4, 8))


def attention() -> ModelProto:
    """Make the two matrix products of an attention, all operands quantized."""
    writer = GraphWriter(E4M3)
    query = writer.quantized("x")
    key = writer.node("Transpose", query, "key", perm=[0, 2, 1])
    scores = writer.node("MatMul", f"{query} {key}", "scores")
    weights = writer.quantized(writer.node("Softmax", scores, "weights"))
    return writer.finish(writer.node("MatMul", f"{weights} {query}", "y"), (1, 4, 4))


def before_activation() -> ModelProto:
    writer = GraphWriter()
    made = writer.quantized(writer.convolution("x", "c"))
    return writer.finish(writer.node("Relu", made, "y"))


def residual(*, both: bool) -> ModelProto:
    """Make ``y = Relu(Conv(r) + r)`` with a pair on the skip branch, or on both."""
    writer = GraphWriter()
    start = writer.node("Relu", writer.convolution("x", "c1"), "r")
    made = writer.convolution(start, "c2")
    branch = writer.quantized(made) if both else made
    total = writer.node("Add", f"{branch} {start}_d", "a")
    return writer.finish(writer.node("Relu", total, "y"))


def concatenation(second_scale: float) -> ModelProto:
    writer = GraphWriter()
    left = writer.quantized(writer.node("Relu", writer.convolution("x", "c1"), "r1"), 0.1)
    right = writer.quantized(writer.node("Relu", writer.convolution("x", "c2"), "r2"),
                             second_scale)  # fmt: skip
    joined = writer.node("Concat", f"{left} {right}", "joined", axis=0)
    weight = writer.weight("w", (8, 8, 3, 3), 0)
    return writer.finish(writer.node("Conv", f"{writer.quantized(joined)} {weight}", "y"))


def round_trip() -> ModelProto:
    writer = GraphWriter()
    made = writer.node("Softmax", writer.convolution("x", "c"), "soft")
    return writer.finish(writer.node("ReduceL2", writer.quantized(made), "y"))


def with_zero_point(number: int, scale: float = 0.1) -> ModelProto:
    proto = two_convolutions()
    for tensor in proto.graph.initializer:
        if tensor.name == "z":
            tensor.CopyFrom(helper.make_tensor("z", INT8, (), [number]))
        if tensor.name == "s0.1":
            tensor.CopyFrom(constant("s0.1", scale))
    return proto


def integer_bias() -> ModelProto:
    writer = GraphWriter()
    writer.constants += [constant("bq", np.arange(8), np.int32), constant("b_s", 0.001)]
    bias = writer.node("DequantizeLinear", "bq b_s", "b")
    weight = writer.weight("w", (8, 8, 3, 3), 0)
    return writer.finish(writer.node("Conv", f"{writer.quantized('x')} {weight} {bias}", "y"))


def mostly_floating_point() -> ModelProto:
    """One small quantized layer beside a large one that is not."""
    writer = GraphWriter()
    writer.constants.append(constant("big", random_array(64, 8, 5, 5)))
    small = writer.node("Relu", writer.convolution("x", "c1"), "r1")
    return writer.finish(writer.node("Conv", f"{small} big", "y"))
