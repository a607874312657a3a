"""Q/DQ graphs, sound and unsound, in the forms that exporters and quantizers write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper

from tests.builders import FLOAT, INT32, constant, find_node, model, op, value

INT8, INT4, INT16, UINT8 = (
    TensorProto.INT8, TensorProto.INT4, TensorProto.INT16, TensorProto.UINT8,
)  # fmt: skip
E4M3, E5M2 = TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2
_WEIGHT = np.random.default_rng(0).integers(-7, 8, (6, 3, 3, 3))


def tensor(name: str, values: Any, dtype: int) -> TensorProto:
    array = np.asarray(values)
    return helper.make_tensor(name, dtype, array.shape, array.ravel().tolist())


def axis_of(axis: int | None) -> dict[str, int]:
    return {} if axis is None else {"axis": axis}


@dataclass(frozen=True)
class Pair:
    """How one operand is quantized; ``zeros`` are zero points, None leaves them out."""

    dtype: int = INT8
    scale: Any = 0.1
    zeros: Any = 0
    axis: int | None = None

    def constants(self, prefix: str) -> list[TensorProto]:
        made = [tensor(f"{prefix}_s", self.scale, FLOAT)]
        if self.zeros is not None:
            zeros = np.full(np.shape(self.scale), self.zeros) if np.isscalar(self.zeros) else (
                self.zeros
            )  # fmt: skip
            made.append(tensor(f"{prefix}_z", zeros, self.dtype))
        return made

    def operands(self, prefix: str) -> str:
        return f"{prefix}_s" + ("" if self.zeros is None else f" {prefix}_z")


PER_CHANNEL = Pair(scale=np.full(6, 0.01), axis=0)


@dataclass(frozen=True)
class Layer:
    """``x -> Q -> DQ -> [between] -> Conv(DQ(w)) -> y``; None leaves a pair out."""

    data: Pair | None = field(default_factory=Pair)
    weight: Pair | None = PER_CHANNEL
    bias: str = ""
    between: tuple[NodeProto, ...] = ()
    opset: int = 21
    domain: str = ""
    op_type: str = "Conv"
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def make(self) -> ModelProto:
        nodes: list[NodeProto] = []
        constants: list[TensorProto] = []
        read = "x"
        if self.data is not None:
            constants += self.data.constants("x")
            where = {**axis_of(self.data.axis), "domain": self.domain}
            scaled = self.data.operands("x")
            nodes += [
                op("QuantizeLinear", f"x {scaled}", "xq", "x_q", **where),
                op("DequantizeLinear", f"xq {scaled}", "xd", "x_dq", **where),
            ]
            read = "xd"
        nodes += self.between
        read = self.between[-1].output[0] if self.between else read
        values = _WEIGHT.transpose(1, 0, 2, 3) if self.op_type == "ConvTranspose" else _WEIGHT
        if self.weight is not None:
            constants += [tensor("wq", values, self.weight.dtype), *self.weight.constants("w")]
            where = {**axis_of(self.weight.axis), "domain": self.domain}
            scaled = self.weight.operands("w")
            nodes.append(op("DequantizeLinear", f"wq {scaled}", "w", "w_dq", **where))
        else:
            constants.append(constant("w", values * 0.01))
        nodes += self._make_bias(constants)
        bias = " b" if self.bias else ""
        nodes.append(op(self.op_type, f"{read} w{bias}", "y", "layer", **self.attributes))
        domains = (self.domain,) if self.domain else ()
        return model(
            nodes,
            [value("x", ("N", 3, 8, 8))],
            [value("y", ("N", 6, None, None))],
            constants,
            opset=self.opset,
            domains=domains,
        )

    def _make_bias(self, constants: list[TensorProto]) -> list[NodeProto]:
        if not self.bias:
            return []
        if self.bias == "float":
            constants.append(constant("b", np.arange(6)))
            return []
        dtype = INT32 if self.bias == "int32" else INT8
        constants.append(tensor("bq", np.arange(-3, 3), dtype))
        constants.append(tensor("b_s", np.full(6, 0.001), FLOAT))
        return [op("DequantizeLinear", "bq b_s", "b", "b_dq", axis=0)]


def matmul(
    weight: Pair | None = None, data: Pair | None = None, *, block: int = 0, opset: int = 21
) -> ModelProto:
    """Make ``y = MatMul(DQ(Q(x)), DQ(w))`` of an 8 x 6 weight."""
    weight, data = weight or Pair(), data or Pair()
    blocks = {"block_size": block} if block else {}
    nodes = [
        op("QuantizeLinear", f"x {data.operands('x')}", "xq", "x_q", **axis_of(data.axis)),
        op("DequantizeLinear", f"xq {data.operands('x')}", "xd", "x_dq", **axis_of(data.axis)),
        op("DequantizeLinear", f"wq {weight.operands('w')}", "w", "w_dq",
           **axis_of(weight.axis), **blocks),
        op("MatMul", "xd w", "y", "layer"),
    ]  # fmt: skip
    numbers = np.random.default_rng(1).integers(-7, 8, (8, 6))
    constants = [tensor("wq", numbers, weight.dtype), *weight.constants("w"), *data.constants("x")]
    return model(nodes, [value("x", ("N", 8))], [value("y", ("N", 6))], constants, opset=opset)


def pair_of(dtype: int = INT8, *, source: int = FLOAT) -> ModelProto:
    """Make ``y = DQ(Q(x))``, ``x`` of another type than FLOAT if wanted."""
    nodes = [op("QuantizeLinear", "x s z", "q", "x_q"), op("DequantizeLinear", "q s z", "y", "dq")]
    constants = [tensor("s", 0.1, FLOAT), tensor("z", 0, dtype)]
    return model(nodes, [value("x", dtype=source)], [value("y")], constants, opset=21)


def dequantized_constant(shape: tuple[int, ...], *, zero_point: int = 0) -> ModelProto:
    """Make ``y = x + DQ(constant)``."""
    constants = [
        tensor("cq", np.full(shape, 100), INT8),
        tensor("c_s", 0.01, FLOAT),
        tensor("c_z", zero_point, INT8),
    ]
    nodes = [op("DequantizeLinear", "cq c_s c_z", "c", "c_dq"), op("Add", "x c", "y", "add")]
    return model(nodes, [value("x")], [value("y")], constants, opset=21)


def without_constant(name: str) -> ModelProto:
    """Make a layer whose scale or zero point is an input of the model."""
    made = Layer().make()
    kept = [found for found in made.graph.initializer if found.name != name]
    (moved,) = (found for found in made.graph.initializer if found.name == name)
    made.graph.input.append(value(name, tuple(moved.dims), moved.data_type))
    del made.graph.initializer[:]
    made.graph.initializer.extend(kept)
    return made


def with_computed_scale(*sources: NodeProto) -> ModelProto:
    """Make a layer whose scale ``x_s`` the nodes compute, from ``half`` or from ``x``."""
    made = Layer().make()
    kept = [found for found in made.graph.initializer if found.name != "x_s"]
    del made.graph.initializer[:]
    made.graph.initializer.extend([*kept, constant("half", 0.5), constant("one", 1, np.int64)])
    for node in reversed(sources):
        made.graph.node.insert(0, node)
    return made


def cast_between() -> ModelProto:
    """Make a layer that computes in FP16 behind a Cast of FP32 dequantized operands."""
    made = Layer().make()
    layer = find_node(made, "layer")
    layer.input[0], layer.input[1], layer.output[0] = "x16", "w16", "y16"
    half = TensorProto.FLOAT16
    made.graph.node.insert(3, op("Cast", "xd", "x16", "x_cast", to=half))
    made.graph.node.insert(4, op("Cast", "w", "w16", "w_cast", to=half))
    made.graph.node.append(op("Cast", "y16", "y", "y_cast", to=FLOAT))
    return made
