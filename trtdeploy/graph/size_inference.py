"""Concrete sizes of every value, from concrete sizes of the inputs; no weight is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import GraphProto, ModelProto, NodeProto, numpy_helper

from trtdeploy.core.dtypes import DType
from trtdeploy.graph.attributes import integer_of, value_of
from trtdeploy.graph.model import ONNX_DOMAINS, ONNX_ERRORS, OnnxModel, walk_graphs
from trtdeploy.graph.onnx_defects import (
    LARGEST_SIZE,
    import_used_domains,
    shield_crashing_nodes,
)
from trtdeploy.graph.shape_inference import (
    copy_structure,
    infer_with_values,
    read_shapes,
    require_known,
)

Sizes = tuple[int, ...]
Integers = npt.NDArray[Any]

_MOST_ROUNDS = 12
"""Sizes that depend on sizes that depend on sizes; each round solves one such step."""
_LARGEST_FOLDED = 1 << 10
"""Elements of a constant that can still be part of a shape."""


def infer_sizes(model: OnnxModel, shapes: Mapping[str, Sizes]) -> list[dict[str, Sizes]]:
    """Return the known sizes of the values of each graph, in the order of ``walk_graphs``.

    ONNX's inference follows sizes through some operators only; it does not see, for one, a Slice
    up to the length of the sentence. So what is computed from known sizes becomes a constant, and
    inference starts again.

    Args:
        model: Any model; a broken one gives fewer sizes, never an error.
        shapes: Sizes of the inputs; those left out keep what the file says.
    """
    proto = _prepare(model, shapes)
    inferred = _infer(proto)
    for _ in range(_MOST_ROUNDS):
        if not _fold_shape_arithmetic(proto, _read_sizes(inferred.graph), model.opset):
            break
        inferred = _infer(proto)
    return [_read_sizes(graph) for graph in walk_graphs(inferred.graph)]


def _prepare(model: OnnxModel, shapes: Mapping[str, Sizes]) -> ModelProto:
    proto = copy_structure(model)
    for value in proto.graph.input:
        dims = list(value.type.tensor_type.shape.dim)
        wanted = shapes.get(value.name, ())
        if len(dims) == len(wanted):
            for dim, size in zip(dims, wanted, strict=True):
                if 0 <= size <= LARGEST_SIZE:
                    dim.dim_value = size
    shield_crashing_nodes(proto.graph)
    import_used_domains(proto)
    return proto


def _infer(proto: ModelProto) -> ModelProto:
    try:
        return infer_with_values(proto)
    except ONNX_ERRORS:
        return proto  # the sizes of inputs and constants are still known


def _read_sizes(graph: GraphProto) -> dict[str, Sizes]:
    known = {name: require_known(dims) for name, dims in read_shapes(graph).items()}
    return {name: sizes for name, sizes in known.items() if sizes is not None}


def _fold_shape_arithmetic(proto: ModelProto, sizes: Mapping[str, Sizes], opset: int) -> bool:
    """Replace main-graph nodes that compute from known sizes by constants; False if none does."""
    known = {
        tensor.name: numpy_helper.to_array(tensor)
        for tensor in proto.graph.initializer
        if tensor.data_type in _INTEGER_CODES and np.prod(tensor.dims) <= _LARGEST_FOLDED
    }
    kept, found = [], []
    for node in proto.graph.node:
        result = _compute(node, known, sizes, opset)
        if result is None or result.size > _LARGEST_FOLDED:
            kept.append(node)
            continue
        known[node.output[0]] = result
        found.append(numpy_helper.from_array(result, node.output[0]))
    if not found:
        return False
    del proto.graph.node[:]
    proto.graph.node.extend(kept)
    proto.graph.initializer.extend(found)
    return True


_INTEGER_CODES = frozenset({DType.INT32.code, DType.INT64.code})


def _compute(
    node: NodeProto, known: Mapping[str, Integers], sizes: Mapping[str, Sizes], opset: int
) -> Integers | None:
    """Return the integers a node computes; None when they are not known, or it has other work."""
    if node.domain not in ONNX_DOMAINS or not node.input or len(node.output) != 1:
        return None
    if node.op_type == "Shape":
        size = sizes.get(node.input[0])
        first, last = integer_of(node, "start", 0), value_of(node, "end")
        stop = last if isinstance(last, int) else None
        return None if size is None else np.array(size[first:stop], np.int64)
    rule = _RULES.get(node.op_type)
    operands = [known.get(name) for name in node.input]
    given = [operand for operand in operands if operand is not None]
    if rule is None or len(given) != len(operands):
        return None
    try:
        with np.errstate(all="ignore"):
            return np.asarray(rule(node, given))
    except (ValueError, IndexError, TypeError, OverflowError, ZeroDivisionError):
        return None  # a broken node; other checks name it


def _axes_of(node: NodeProto, operands: list[Integers]) -> tuple[int, ...] | None:
    """Return the axes of Squeeze or Unsqueeze, an attribute before opset 13."""
    if len(operands) > 1:
        return tuple(int(axis) for axis in operands[1].ravel())
    axes = value_of(node, "axes")
    return axes if isinstance(axes, tuple) else None


def _unsqueeze(node: NodeProto, operands: list[Integers]) -> Integers:
    axes = _axes_of(node, operands)
    if axes is None:
        raise ValueError("Unsqueeze without axes")
    return np.expand_dims(operands[0], axes)


def _slice(node: NodeProto, operands: list[Integers]) -> Integers:
    data, starts, ends, *rest = operands
    axes = rest[0].ravel() if rest else range(starts.size)
    steps = rest[1].ravel() if len(rest) > 1 else [1] * starts.size
    cut: list[slice] = [slice(None)] * data.ndim
    for start, end, axis, step in zip(starts.ravel(), ends.ravel(), axes, steps, strict=True):
        cut[axis] = slice(int(start), int(end), int(step))
    if any((part.step or 1) < 0 for part in cut):
        raise ValueError("a reversed slice is no size")
    return np.asarray(data[tuple(cut)])


def _divide(_: NodeProto, operands: list[Integers]) -> Integers:
    left, right = operands
    if not right.all():
        raise ZeroDivisionError
    return np.asarray(np.trunc(left / right)).astype(left.dtype)


def _cast(node: NodeProto, operands: list[Integers]) -> Integers:
    types = {DType.INT32.code: np.int32, DType.INT64.code: np.int64}
    wanted = types.get(integer_of(node, "to", 0))
    if wanted is None:
        raise ValueError("no integer any more")
    return operands[0].astype(wanted)


_RULES: dict[str, Callable[[NodeProto, list[Integers]], Any]] = {
    "Add": lambda _, operands: operands[0] + operands[1],
    "Cast": _cast,
    "Concat": lambda node, operands: np.concatenate(operands, integer_of(node, "axis", 0)),
    "Div": _divide,
    "Gather": lambda node, operands: np.take(
        operands[0], operands[1].astype(np.int64), integer_of(node, "axis", 0)
    ),
    "Max": lambda _, operands: np.maximum.reduce(operands),
    "Min": lambda _, operands: np.minimum.reduce(operands),
    "Mul": lambda _, operands: operands[0] * operands[1],
    "Slice": _slice,
    "Squeeze": lambda node, operands: np.squeeze(operands[0], _axes_of(node, operands)),
    "Sub": lambda _, operands: operands[0] - operands[1],
    "Unsqueeze": _unsqueeze,
}
"""What exporters compute sizes with; results as the ONNX operator specification defines them."""
