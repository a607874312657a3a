"""Where Q/DQ pairs lie in a graph: fusions they break, conversions they cost."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import NodeProto

from trtdeploy.core.dtypes import DType
from trtdeploy.graph.index import ModelIndex, Scope
from trtdeploy.graph.layer_costs import is_layer, name_of
from trtdeploy.graph.model import ONNX_DOMAINS
from trtdeploy.precision.audit.operands import (
    Dequantizer,
    find_constant,
    find_source,
    is_dequantizer,
    is_quantizer,
    iterate_readers,
    quote,
    read_dequantizer,
)
from trtdeploy.precision.audit.report import Obstacle, ObstacleKind

ACTIVATIONS = frozenset(
    {"Relu", "Clip", "LeakyRelu", "PRelu", "Elu", "Selu", "Sigmoid", "HardSigmoid", "HardSwish",
     "Tanh", "Gelu", "Softplus", "Swish", "Mish", "Erf"}
)  # fmt: skip
"""Element-wise functions that TensorRT computes in the kernel of the layer before them."""
_POINTWISE = ACTIVATIONS | {
    "Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "Sqrt", "Exp", "Neg", "Abs", "Where",
    "BatchNormalization", "AveragePool", "GlobalAveragePool", "MaxPool", "ReduceMean",
}  # fmt: skip
"""Operators whose kernel also dequantizes what it reads, and quantizes what it writes."""
_MEANT_FOR_8_BITS = frozenset({"Add", "Mul", "Sub", "AveragePool", "GlobalAveragePool", "MaxPool"})
"""Operators beside the matrix products that gain from 8-bit operands: they read half the bytes."""


def audit_placement(index: ModelIndex) -> tuple[list[Obstacle], int]:
    """Look at every Q/DQ node, Add and Concat of the graph.

    Returns:
        Broken fusions, doubtful scales and pairs without use; and how many Q/DQ nodes need a pass
        over a tensor of their own.
    """
    obstacles: list[Obstacle] = []
    conversions = 0
    for scope, node in index.nodes():
        if is_quantizer(node):
            conversions += not _is_fused(scope, node)
            obstacles += _check_numbers(index, scope, node)
            obstacles += _find_separated_activation(scope, node)
            obstacles += _find_round_trip(scope, node)
        elif is_dequantizer(node):
            conversions += _is_read_in_floating_point(scope, node)
            obstacles += _check_numbers(index, scope, node)
        elif node.op_type == "Add" and node.domain in ONNX_DOMAINS:
            obstacles += _find_quantized_branches(scope, node)
        elif node.op_type == "Concat" and node.domain in ONNX_DOMAINS:
            obstacles += _find_different_scales(index, scope, node)
    return obstacles, conversions


def _is_fused(scope: Scope, quantizer: NodeProto) -> bool:
    """True when the kernel that makes the value can write it in 8 bits, or it is a constant."""
    if find_constant(scope, quantizer.input[0]) is not None:
        return True
    producer = find_source(scope, quantizer.input[0])
    if producer is None:
        return False  # an input of the model
    return is_layer(producer) or is_dequantizer(producer) or producer.op_type in _POINTWISE


def _is_read_in_floating_point(scope: Scope, node: NodeProto) -> bool:
    """True for an activation that something reads which cannot dequantize on the way."""
    if find_constant(scope, node.input[0]) is not None:
        return False
    return any(
        not (is_layer(reader) or is_quantizer(reader) or reader.op_type in _POINTWISE)
        for reader in iterate_readers(scope, node.output[0])
    )


def _check_numbers(index: ModelIndex, scope: Scope, node: NodeProto) -> Iterator[Obstacle]:
    found = read_dequantizer(index, scope, node)
    if found.has_bad_scale:
        yield ObstacleKind.BAD_SCALE.at(
            name_of(node),
            f"the scale {node.input[1]!r} of {name_of(node)!r} holds a value that is 0, negative "
            "or not finite",
        )
    if found.has_zero_point:
        yield ObstacleKind.ZERO_POINT.at(
            name_of(node),
            f"the zero point {node.input[2]!r} of {name_of(node)!r} is not 0",
        )
    if is_dequantizer(node) and found.stored is DType.INT32:
        yield ObstacleKind.INTEGER_BIAS.at(
            name_of(node),
            f"{name_of(node)!r} dequantizes the int32 constant {node.input[0]!r}",
        )


def _find_separated_activation(scope: Scope, quantizer: NodeProto) -> Iterator[Obstacle]:
    """Yield ``layer -> Q -> DQ -> activation``: the activation cannot run in the layer's kernel."""
    layer = _find_layer_before(scope, quantizer.input[0])
    if layer is None:
        return
    for reader in iterate_readers(scope, quantizer.output[0]):
        if not is_dequantizer(reader):
            continue
        users = list(iterate_readers(scope, reader.output[0]))
        activation = next((user for user in users if user.op_type in ACTIVATIONS), None)
        if activation is not None:
            yield ObstacleKind.BEFORE_ACTIVATION.at(
                name_of(layer),
                f"{name_of(quantizer)!r} quantizes the result of {quote(layer)} before "
                f"{quote(activation)}",
            )
            return


def _find_layer_before(scope: Scope, name: str) -> NodeProto | None:
    """Return the layer that computes a value, also behind the Add of its bias."""
    producer = scope.producer_of(name)
    if producer is not None and producer.op_type == "Add":
        computed = [n for n in producer.input if scope.constant_of(n) is None]
        producer = scope.producer_of(computed[0]) if len(computed) == 1 else None
    return producer if producer is not None and is_layer(producer) else None


def _find_round_trip(scope: Scope, quantizer: NodeProto) -> Iterator[Obstacle]:
    """Yield a pair that rounds a value for readers that compute in floating point anyway."""
    if find_constant(scope, quantizer.input[0]) is not None:
        return
    pairs = [node for node in iterate_readers(scope, quantizer.output[0]) if is_dequantizer(node)]
    readers = [reader for pair in pairs for reader in iterate_readers(scope, pair.output[0])]
    if not readers or any(
        is_layer(reader) or is_quantizer(reader) or reader.op_type in _MEANT_FOR_8_BITS
        for reader in readers
    ):
        return
    if any(reader.op_type in ACTIVATIONS for reader in readers):
        return  # a separated activation; named as that
    yield ObstacleKind.ROUND_TRIP.at(
        name_of(quantizer),
        f"{name_of(quantizer)!r} quantizes a value that only {quote(readers[0])} reads, in "
        "floating point",
    )


def _find_quantized_branches(scope: Scope, add: NodeProto) -> Iterator[Obstacle]:
    """Yield an Add whose operands are both dequantized although a layer computes one of them."""
    sources = []
    for name in add.input[:2]:
        producer = scope.producer_of(name)
        if producer is None or not is_dequantizer(producer):
            return
        quantizer = scope.producer_of(producer.input[0])
        if quantizer is None or not is_quantizer(quantizer):
            return  # a constant, or an input
        sources.append((quantizer, _find_layer_before(scope, quantizer.input[0])))
    for quantizer, layer in sources:
        if layer is not None:
            yield ObstacleKind.BOTH_BRANCHES.at(
                name_of(add),
                f"both operands of {quote(add)} are quantized; without {name_of(quantizer)!r} it "
                f"would be computed in the kernel of {quote(layer)}",
            )
            return


def _find_different_scales(index: ModelIndex, scope: Scope, node: NodeProto) -> Iterator[Obstacle]:
    """Yield a Concat that joins numbers of different scales, and whose result is quantized."""
    if not any(is_quantizer(reader) for reader in iterate_readers(scope, node.output[0])):
        return
    found: list[Dequantizer] = []
    for name in node.input:
        producer = find_source(scope, name)
        if producer is None or not is_dequantizer(producer):
            return  # a floating-point Concat; QuantizeLinear behind it is one kernel
        found.append(read_dequantizer(index, scope, producer))
    first = found[0]
    for other in found[1:]:
        if not _have_same_scale(first, other):
            yield ObstacleKind.CONCAT_SCALES.at(
                name_of(node),
                f"{quote(node)} joins the scales of {name_of(first.node)!r} and "
                f"{name_of(other.node)!r}",
            )
            return


def _have_same_scale(first: Dequantizer, second: Dequantizer) -> bool:
    if first.scale is None or second.scale is None:
        return first.node.input[1] == second.node.input[1]
    return bool(np.array_equal(first.scale, second.scale))
