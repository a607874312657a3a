"""The layers that can be quantized: which operand is data, which is the weight, and its axis."""

from __future__ import annotations

from dataclasses import dataclass

from onnx import NodeProto, TensorProto

from trtdeploy.core.dtypes import DType
from trtdeploy.graph.attributes import integer_of
from trtdeploy.graph.index import ModelIndex, Scope
from trtdeploy.graph.model import ONNX_DOMAINS

CONV, CONV_TRANSPOSE, GEMM, MATMUL = "Conv", "ConvTranspose", "Gemm", "MatMul"
LAYER_OPERATORS = frozenset({CONV, CONV_TRANSPOSE, GEMM, MATMUL})
_MATRIX_RANK = 2


@dataclass(frozen=True)
class Layer:
    """A node with operands that can be quantized.

    Attributes:
        scope: The graph it lies in.
        data_slots: Its operands that are activations.
        weight_slot: Its operand that is a constant; None for a product of two activations.
        weight: That constant.
        axis: Axis of the constant with one scale per output channel; None for one scale in all.
        axis_reason: Why there is one scale in all where channels could have their own.
        obstacle: Why this form of the operator cannot be quantized; empty when it can.
    """

    scope: Scope
    node: NodeProto
    data_slots: tuple[int, ...]
    weight_slot: int | None = None
    weight: TensorProto | None = None
    axis: int | None = None
    axis_reason: str = ""
    obstacle: str = ""

    @property
    def name(self) -> str:
        """Name of the node."""
        return str(self.node.name)

    @property
    def data(self) -> tuple[str, ...]:
        """The activations that it reads."""
        return tuple(self.node.input[slot] for slot in self.data_slots)


def find_layers(index: ModelIndex) -> dict[str, Layer]:
    """Return every Conv, ConvTranspose, Gemm and MatMul by name, nested graphs included."""
    return {
        node.name: describe_layer(scope, node)
        for scope, node in index.nodes()
        if node.op_type in LAYER_OPERATORS and node.domain in ONNX_DOMAINS
    }


def describe_layer(scope: Scope, node: NodeProto) -> Layer:
    """Return the operands of a layer and how its weight is scaled.

    Scales belong to output channels, so that each can be taken out of the sum:

    * Conv ``[M, C/group, ...]``: axis 0. ConvTranspose ``[C, M/group, ...]``: axis 1; with groups
      that axis repeats for each group, and one scale per output channel is no vector along it.
    * Gemm: rows of ``A'`` or columns of ``B'``, wherever transA and transB put them.
    * MatMul: the last axis of a right operand, the last but one of a left operand, as long as the
      operand is one matrix (axes in front of it, if any, are 1).
    """
    constants = {slot: tensor for slot in (0, 1) if (tensor := scope.constant_of(node.input[slot]))}
    if len(constants) > 1:
        return Layer(scope, node, (), obstacle="both operands are constants")
    if not constants:
        if node.op_type == MATMUL:
            return Layer(scope, node, (0, 1), obstacle=_judge_types(scope, node))
        return Layer(scope, node, (0,), obstacle="its weight is not a constant")
    slot, weight = constants.popitem()
    axis, axis_reason = _find_axis(node, slot, tuple(weight.dims))
    obstacle = _judge_types(scope, node) or _judge_weight(node, slot, weight, axis)
    return Layer(scope, node, (1 - slot,), slot, weight, axis, axis_reason, obstacle)


def _judge_types(scope: Scope, node: NodeProto) -> str:
    for name in node.input[:2]:
        dtype = scope.type_of(name)
        if dtype is not DType.FLOAT32:
            return f"its operand {name!r} is {dtype.label}, not float32"
    return ""


def _judge_weight(node: NodeProto, slot: int, weight: TensorProto, axis: int | None) -> str:
    if slot == 0 and node.op_type in (CONV, CONV_TRANSPOSE):
        return "its data is a constant and its weight is not"
    if 0 in weight.dims:
        return f"its weight {weight.name!r} is empty"
    if axis is not None and not 0 <= axis < len(weight.dims):
        return f"its weight {weight.name!r} of shape {list(weight.dims)} has no axis {axis}"
    return ""


def _find_axis(node: NodeProto, slot: int, dims: tuple[int, ...]) -> tuple[int | None, str]:
    """Return the axis with one scale per output channel; None and why for one scale in all."""
    if node.op_type == CONV:
        return 0, ""
    if node.op_type == CONV_TRANSPOSE:
        groups = integer_of(node, "group", 1)
        if groups == 1:
            return 1, ""
        return (
            None,
            f"one scale for the whole weight: its axis of output channels repeats {groups}x",
        )
    if node.op_type == GEMM:
        return integer_of(node, "transA", 0) if slot == 0 else 1 - integer_of(node, "transB", 0), ""
    return _find_matmul_axis(slot, dims)


def _find_matmul_axis(slot: int, dims: tuple[int, ...]) -> tuple[int | None, str]:
    rank = len(dims)
    if rank < _MATRIX_RANK:
        return None, "one scale for the whole weight, which is a vector"
    if any(size != 1 for size in dims[:-2]):
        return None, "one scale for the whole weight, which is a batch of matrices"
    return (rank - 1 if slot == 1 else rank - 2), ""
