"""Weight and bias of a Conv, ConvTranspose, Gemm or MatMul, seen by output channel."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from onnx import NodeProto, TensorProto, numpy_helper

from trtdeploy.core.dtypes import DType
from trtdeploy.graph.attributes import integer_of
from trtdeploy.graph.channels import ChannelLayout
from trtdeploy.graph.constant_values import read_constant
from trtdeploy.graph.index import ModelIndex, Scope
from trtdeploy.graph.model import ONNX_DOMAINS
from trtdeploy.graph.naming import NameSource

WEIGHT_SLOT, BIAS_SLOT = 1, 2
CONVOLUTIONS = ("Conv", "ConvTranspose")
_MATRIX_RANK = 2
_LEAST_CONVOLUTION_RANK = 3

Channels = npt.NDArray[np.float64]
"""One FP64 number per output channel."""


@dataclass(frozen=True, eq=False)
class LayerWeight:
    """The constant weight of a layer.

    Attributes:
        tensor: The initializer, FP32 and not empty.
        outputs: Number of output channels.
        layout: Runs of elements that belong to one output channel.
        channels: Output channel of each channel of ``layout``.
    """

    tensor: TensorProto
    outputs: int
    layout: ChannelLayout
    channels: npt.NDArray[np.int64]


def find_layer_weight(scope: Scope, node: NodeProto) -> LayerWeight | None:
    """Return the weight of a layer of ``scope``; None if it is computed, not FP32, or no layer."""
    if node.domain not in ONNX_DOMAINS or len(node.input) <= WEIGHT_SLOT:
        return None
    tensor = scope.initializers.get(node.input[WEIGHT_SLOT])
    if tensor is None or tensor.data_type != DType.FLOAT32.code or not math.prod(tensor.dims):
        return None
    rank = len(tensor.dims)
    if node.op_type == "ConvTranspose" and rank >= _LEAST_CONVOLUTION_RANK:
        return _read_transposed(tensor, integer_of(node, "group", 1))
    if node.op_type == "Conv" and rank >= _LEAST_CONVOLUTION_RANK:
        axis = 0
    elif node.op_type in ("Gemm", "MatMul") and rank == _MATRIX_RANK:
        axis = 0 if node.op_type == "Gemm" and integer_of(node, "transB", 0) else 1
    else:
        return None
    outputs = tensor.dims[axis]
    return LayerWeight(tensor, outputs, ChannelLayout.along(tensor.dims, axis), np.arange(outputs))


def _read_transposed(tensor: TensorProto, group: int) -> LayerWeight | None:
    """Read a weight of shape (inputs, outputs / group, kernel...) (ONNX operator specification)."""
    inputs, group_outputs = tensor.dims[:2]
    if group < 1 or inputs % group:
        return None
    first = np.arange(group).reshape(group, 1, 1) * group_outputs
    shape = (group, inputs // group, group_outputs)
    channels = np.broadcast_to(first + np.arange(group_outputs), shape).reshape(-1)
    layout = ChannelLayout(inputs * group_outputs, math.prod(tensor.dims[2:]))
    return LayerWeight(tensor, group * group_outputs, layout, channels)


def read_bias(index: ModelIndex, node: NodeProto, slot: int, outputs: int) -> Channels | None:
    """Return an operand that a node of the main graph adds along the last axis.

    Args:
        index: The index of the model.
        node: A layer, or the Add behind it.
        slot: Which input; one that is left out is all zeros.
        outputs: Number of output channels.

    Returns:
        FP64, shape (outputs,); None when it is computed or not a number per channel.
    """
    if len(node.input) <= slot or not node.input[slot]:
        return np.zeros(outputs)
    values = read_constant(index.model, index.main, node.input[slot])
    if values is None or values.size != math.prod(values.shape[-1:]):
        return None
    return spread_bias(values, outputs)


def spread_bias(values: npt.NDArray[np.generic], outputs: int) -> Channels | None:
    """Return one number for all, or one per channel, as the latter; None if it is neither."""
    if values.size not in {1, outputs}:
        return None
    return np.broadcast_to(values.astype(np.float64).reshape(-1), outputs)


def store_bias(
    index: ModelIndex, names: NameSource, node: NodeProto, slot: int, bias: Channels
) -> None:
    """Let a node of the main graph read ``bias``, as a new FP32 initializer."""
    given = node.input[slot] if len(node.input) > slot else ""
    name = names.make(f"{given}_folded" if given else f"{node.name}_bias")
    with np.errstate(over="ignore"):
        add_initializer(index, numpy_helper.from_array(bias.astype(np.float32), name))
    if len(node.input) > slot:
        node.input[slot] = name
    else:
        node.input.append(name)


def add_initializer(index: ModelIndex, tensor: TensorProto) -> None:
    """Append a constant to the main graph, and to its index."""
    index.model.graph.initializer.append(tensor)
    index.main.initializers[tensor.name] = index.model.graph.initializer[-1]


def is_read_once(scope: Scope, name: str) -> bool:
    """True when exactly one node reads ``name``, and nobody gets it as a result."""
    return len(scope.uses.get(name, ())) == 1 and name not in scope.outputs


def take_over_result(scope: Scope, node: NodeProto, follower: NodeProto) -> None:
    """Let ``node`` compute, under its name, what ``follower`` did; that one is to be removed."""
    node.output[0] = follower.output[0]
    scope.producers[node.output[0]] = node
