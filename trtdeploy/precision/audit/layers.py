"""What each layer of a quantized graph will run in, and what keeps it out of 8 bits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onnx import NodeProto

from trtdeploy.core.dtypes import DType
from trtdeploy.graph.attributes import integer_of, value_of
from trtdeploy.graph.index import ModelIndex, Scope
from trtdeploy.graph.layer_costs import LayerCost, is_layer, name_of
from trtdeploy.precision.audit.operands import (
    Dequantizer,
    Operand,
    quote,
    trace_operand,
)
from trtdeploy.precision.audit.report import LayerAudit, Obstacle, ObstacleKind

_KERNELS = {DType.INT8: "int8", DType.FLOAT8E4M3FN: "fp8"}
"""Types with matrix kernels of their own (TensorRT support matrix; FP8 from compute 8.9 on)."""
_FLOATS = {
    DType.FLOAT32: "fp32", DType.FLOAT16: "fp16", DType.BFLOAT16: "bf16", DType.FLOAT64: "fp64",
}  # fmt: skip
_OPERANDS = ("data", "weight")


def audit_layers(
    index: ModelIndex, costs: Mapping[str, LayerCost | None]
) -> tuple[list[LayerAudit], list[Obstacle]]:
    """Return one entry per Conv, ConvTranspose, Gemm and MatMul, in graph order.

    Returns:
        The layers, and what is in the way of them.
    """
    layers, obstacles = [], []
    for scope, node in index.nodes():
        if is_layer(node):
            operands = [trace_operand(index, scope, name) for name in node.input[:2]]
            found = list(_find_obstacles(node, operands))
            layers.append(_audit_layer(scope, node, costs.get(name_of(node)), operands, found))
            obstacles += found
    return layers, obstacles


def _audit_layer(
    scope: Scope,
    node: NodeProto,
    cost: LayerCost | None,
    operands: list[Operand],
    obstacles: list[Obstacle],
) -> LayerAudit:
    found = {operand.dequantizer.stored for operand in operands if operand.dequantizer}
    touched = bool(found)
    kernel = _KERNELS.get(found.pop(), "") if len(found) == 1 else ""
    runs_in = kernel if kernel and not obstacles else _name_float(scope, node)
    return LayerAudit(
        node=name_of(node),
        op_type=node.op_type,
        runs_in=runs_in,
        touched=touched,
        flops=cost.flops if cost else None,
        weight_bytes=cost.weight_bytes if cost else None,
        obstacles=tuple(obstacle.kind for obstacle in obstacles),
    )


def _name_float(scope: Scope, node: NodeProto) -> str:
    dtype = scope.type_of(node.output[0])
    return _FLOATS.get(dtype, dtype.label)


def _find_obstacles(node: NodeProto, operands: list[Operand]) -> Iterator[Obstacle]:
    """Yield what keeps a layer that Q/DQ nodes touch from running in 8 bits."""
    quantized = [operand.dequantizer for operand in operands if operand.dequantizer]
    if not quantized:
        return
    name = name_of(node)
    for label, operand in zip(_OPERANDS, operands, strict=True):
        yield from _find_between(name, label, operand)
    if len(quantized) < len(operands):
        missing = next(o for o in operands if o.dequantizer is None)
        yield ObstacleKind.ONE_OPERAND.at(
            name,
            f"only {quote(quantized[0].node)} quantizes an operand of {quote(node)}; "
            f"{missing.name!r} stays in floating point",
        )
        return
    first, second = quantized
    if first.stored is not second.stored:
        yield ObstacleKind.MIXED_TYPES.at(
            name,
            f"{quote(node)} reads {first.stored.label} from {name_of(first.node)!r} and "
            f"{second.stored.label} from {name_of(second.node)!r}",
        )
    elif first.stored not in _KERNELS:
        yield ObstacleKind.NO_KERNEL.at(name, f"no kernel multiplies {first.stored.label} operands")
    for source in quantized:
        if source.has_zero_point:
            yield ObstacleKind.ZERO_POINT.at(
                name,
                f"{name_of(source.node)!r} has a zero point other than 0",
            )
        if source.has_bad_scale:
            yield ObstacleKind.BAD_SCALE.at(
                name,
                f"{name_of(source.node)!r} has a scale that is 0, negative or not finite",
            )
    yield from _find_scale_obstacles(node, operands)


def _find_between(name: str, label: str, operand: Operand) -> Iterator[Obstacle]:
    if operand.dequantizer is None:
        return
    start = name_of(operand.dequantizer.node)
    if operand.cast is not None:
        yield ObstacleKind.CAST_BETWEEN.at(
            name,
            f"the Cast {name_of(operand.cast)!r} stands between {start!r} and the {label} of "
            f"{name!r}",
        )
    if operand.arithmetic is not None:
        yield ObstacleKind.ARITHMETIC_BETWEEN.at(
            name,
            f"{quote(operand.arithmetic)} computes between {start!r} and the {label} of {name!r}",
        )


def _find_scale_obstacles(node: NodeProto, operands: list[Operand]) -> Iterator[Obstacle]:
    for slot, operand in enumerate(operands):
        source = operand.dequantizer
        if source is None or source.is_per_tensor:
            continue
        where = name_of(source.node)
        if source.is_blocked:
            yield ObstacleKind.BLOCKED_SCALE.at(
                name_of(node),
                f"{where!r} has a scale per block within a channel",
            )
        elif not source.is_constant:
            yield ObstacleKind.PER_CHANNEL_ACTIVATION.at(
                name_of(node),
                f"{where!r} scales an activation along axis {source.axis}",
            )
        else:
            yield from _check_axis(node, slot, operand, source)


def _check_axis(
    node: NodeProto, slot: int, operand: Operand, source: Dequantizer
) -> Iterator[Obstacle]:
    """Yield an obstacle when a weight's scales do not run along the output channels."""
    rank = source.rank
    axis = _follow_axis(source.axis, rank, operand)
    right = _output_axis(node, slot, rank)
    if rank and axis is not None and axis != right:
        yield ObstacleKind.WRONG_AXIS.at(
            name_of(node),
            f"{name_of(source.node)!r} scales the weight of {quote(node)} along axis {axis}; its "
            f"output channels are axis {right}",
        )


def _follow_axis(axis: int, rank: int, operand: Operand) -> int | None:
    """Return where the scaled axis is once the movers between have been passed; None if unknown."""
    axis = axis + rank if axis < 0 else axis
    for node in reversed(operand.between):
        if node.op_type == "Transpose":
            order = value_of(node, "perm")
            turned = order if isinstance(order, tuple) else tuple(reversed(range(rank)))
            axis = turned.index(axis) if axis in turned else axis
        elif node.op_type not in ("Identity", "Cast"):
            return None
    return axis


def _output_axis(node: NodeProto, slot: int, rank: int) -> int:
    """Return the axis of a weight that holds the output channels (ONNX operator specification).

    A ConvTranspose weight is (inputs, outputs / group, kernel), a Conv weight (outputs, ...). Of
    a matrix product, the right operand gives the columns of the result, the left one the rows.
    """
    if node.op_type == "Conv":
        return 0
    if node.op_type == "ConvTranspose":
        return 1
    turned = node.op_type == "Gemm" and integer_of(node, ("transA", "transB")[slot], 0)
    last = slot == 1
    return rank - 1 if last != bool(turned) else max(rank - 2, 0)
