"""What each matrix product of a model costs: arithmetic and bytes, from shapes alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from onnx import NodeProto

from trtdeploy.core.dtypes import DType
from trtdeploy.graph.attributes import integer_of
from trtdeploy.graph.index import ModelIndex, Scope, build_index
from trtdeploy.graph.model import ONNX_DOMAINS, OnnxModel
from trtdeploy.graph.size_inference import Sizes, infer_sizes

LAYER_OPERATORS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
"""Operators that do nearly all arithmetic of a network, and that have 8-bit kernels."""


@dataclass(frozen=True)
class LayerCost:
    """Cost of running one layer once.

    Attributes:
        flops: Floating-point operations; a multiply-accumulate counts as 2, as in data sheets.
        weight_bytes: Bytes of the constant operand, in the floating-point type that the layer
            reads: the same layer costs the same whether it is quantized or not. 0 without one.
        activation_bytes: Bytes of the operands that are computed and of the result, likewise.
    """

    flops: int
    weight_bytes: int
    activation_bytes: int


def is_layer(node: NodeProto) -> bool:
    """True for a Conv, ConvTranspose, Gemm or MatMul of ONNX itself."""
    return node.op_type in LAYER_OPERATORS and node.domain in ONNX_DOMAINS and len(node.input) > 1


def name_of(node: NodeProto) -> str:
    """Return the name of a node, or that of its first result when it has none."""
    return node.name or next(iter(node.output), "")


def measure_layer_costs(
    model: OnnxModel | ModelIndex, shapes: Mapping[str, Sizes]
) -> dict[str, LayerCost | None]:
    """Return the cost of every Conv, ConvTranspose, Gemm and MatMul.

    Sizes come from ONNX shape inference on the structure; no weight is read. The body of a loop
    counts once, since the number of rounds is not known.

    Args:
        model: The model, or its index.
        shapes: Sizes of the inputs; those left out keep what the file says.

    Returns:
        Cost by node name (see ``name_of``); None where a size is not known.
    """
    index = model if isinstance(model, ModelIndex) else build_index(model)
    inferred = infer_sizes(index.model, shapes)
    costs: dict[str, LayerCost | None] = {}
    for scope, sizes in zip(index.scopes, inferred, strict=True):
        visible = _Shapes(scope, sizes, outer=inferred[0])
        for node in scope.nodes:
            if is_layer(node):
                costs[name_of(node)] = _measure(visible, node)
    return costs


@dataclass(frozen=True)
class _Shapes:
    """Sizes of the values that nodes of one scope see."""

    scope: Scope
    sizes: Mapping[str, Sizes]
    outer: Mapping[str, Sizes]

    def find(self, name: str) -> Sizes | None:
        found = self.sizes.get(name)
        return self.outer.get(name) if found is None else found

    def is_constant(self, name: str) -> bool:
        """True for an initializer, also behind the Q/DQ nodes that store it in 8 bits."""
        for _ in ("DequantizeLinear", "QuantizeLinear"):
            producer = self.scope.producer_of(name)
            if producer is not None and producer.op_type in ("QuantizeLinear", "DequantizeLinear"):
                name = next(iter(producer.input), "")
        return self.scope.constant_of(name) is not None

    def count_bytes(self, name: str) -> int:
        sizes = self.find(name) or ()
        bits = self.scope.type_of(name).bits or DType.FLOAT32.bits
        return math.prod(sizes) * bits // 8


def _measure(shapes: _Shapes, node: NodeProto) -> LayerCost | None:
    first, second, result = (*node.input[:2], node.output[0])
    operands = shapes.find(first), shapes.find(second), shapes.find(result)
    left, right, out = operands
    if left is None or right is None or out is None:
        return None
    flops = _count_flops(node, left, right, out)
    if flops is None:
        return None
    weights = [name for name in (first, second) if shapes.is_constant(name)]
    moving = [name for name in (first, second, result) if name not in weights]
    return LayerCost(
        flops=flops,
        weight_bytes=sum(map(shapes.count_bytes, weights)),
        activation_bytes=sum(map(shapes.count_bytes, moving)),
    )


def _count_flops(node: NodeProto, left: Sizes, right: Sizes, out: Sizes) -> int | None:
    """Return 2 x multiply-accumulates, by the definitions in the ONNX operator specification.

    Conv: every output element sums over input channels of its group and the kernel, which is
    ``right[1:]``. ConvTranspose: every input element is spread over the output channels of its
    group and the kernel, ``right[1:]`` again. Gemm, MatMul: every output element sums over the
    shared axis. Bias and scaling are left out.
    """
    if not left or not right:
        return None
    if node.op_type == "Conv":
        return 2 * math.prod(out) * math.prod(right[1:])
    if node.op_type == "ConvTranspose":
        return 2 * math.prod(left) * math.prod(right[1:])
    is_turned = node.op_type == "Gemm" and integer_of(node, "transA", 0)
    return 2 * math.prod(out) * (left[0] if is_turned else left[-1])
