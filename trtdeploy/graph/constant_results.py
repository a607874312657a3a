"""What a node with constant operands computes, when every runtime agrees on it."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from onnx import NodeProto, helper
from onnx.reference import ReferenceEvaluator

from trtdeploy.core.dtypes import DType
from trtdeploy.graph.constant_values import read_constant
from trtdeploy.graph.index import Scope
from trtdeploy.graph.model import ONNX_ERRORS, OnnxModel

_Array = npt.NDArray[np.generic]
_Operands = dict[str, _Array]

_SMALL_BYTES = 4096
"""A result up to this size may be larger than what it is computed from."""
_LARGEST_BYTES = 64 << 20
"""Constants beyond this are not read into memory."""

_MOVES = frozenset(
    {
        "Concat", "ConstantOfShape", "Expand", "Flatten", "Gather", "GatherElements", "GatherND",
        "Identity", "Reshape", "ScatterElements", "ScatterND", "Size", "Slice", "Split", "Squeeze",
        "Tile", "Transpose", "Unsqueeze", "Where",
    }
)  # fmt: skip
_EXACT = frozenset(
    {
        "Abs", "Add", "And", "Ceil", "Div", "Equal", "Floor", "Greater", "GreaterOrEqual", "Less",
        "LessOrEqual", "Max", "Min", "Mul", "Neg", "Not", "Or", "Range", "Sign", "Sqrt", "Sub",
        "Xor",
    }
)  # fmt: skip
"""One correctly rounded operation per element (IEEE 754): every runtime has the same result."""
_INTEGERS_ONLY = frozenset(
    {"Cast", "Mod", "Pow", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum"}
)
"""Sums, powers and roundings of floating-point numbers depend on who computes them."""
_COMPUTED = _MOVES | _EXACT | _INTEGERS_ONLY
_BROADCAST = _EXACT | _INTEGERS_ONLY | {"Where"}


def compute_results(model: OnnxModel, scope: Scope, node: NodeProto) -> list[_Array] | None:
    """Return one array per output of ``node``.

    Args:
        model: The model that ``scope`` belongs to.
        scope: The graph of the node.
        node: A node of the standard operator set.

    Returns:
        None when an operand is no constant, when runtimes may disagree about the result, when the
        result is neither small nor at most as large as the constants it makes superfluous, or when
        the node cannot run.
    """
    names = list(dict.fromkeys(name for name in node.input if name))
    if node.op_type not in _COMPUTED or not names:
        return None
    if any(scope.constant_of(name) is None for name in names):
        return None
    found = {n: read_constant(model, scope, n, limit_bytes=_LARGEST_BYTES) for n in names}
    operands = {name: array for name, array in found.items() if array is not None}
    if len(operands) < len(names) or not _is_exact(node, operands):
        return None
    if _estimate_elements(node, operands) > max(_SMALL_BYTES, _count_bytes(operands)):
        return None
    values = _evaluate(model, node, operands)
    if values is None or not _have_declared_types(scope, node, values):
        return None
    spare = _count_bytes({n: a for n, a in operands.items() if _is_read_here_only(scope, node, n)})
    return values if sum(v.nbytes for v in values) <= max(_SMALL_BYTES, spare) else None


def _is_exact(node: NodeProto, operands: _Operands) -> bool:
    whole = all(operand.dtype.kind in "iub" for operand in operands.values())
    if node.op_type == "Div" and whole:
        return bool(np.all(operands[node.input[1]]))
    return whole or node.op_type not in _INTEGERS_ONLY


def _estimate_elements(node: NodeProto, operands: _Operands) -> float:
    """Return about how large the result is, before three numbers have made terabytes."""
    arrays = [operands[name] for name in node.input if name]
    if node.op_type == "ConstantOfShape":
        return _multiply(arrays[0])
    if node.op_type in ("Expand", "Tile"):
        return _multiply(arrays[1]) * max(arrays[0].size, 1)
    if node.op_type == "Range" and all(array.size == 1 for array in arrays):
        start, limit, delta = (float(array.ravel()[0]) for array in arrays)
        return abs((limit - start) / delta) if delta else math.inf
    if node.op_type in _BROADCAST:
        rank = max(array.ndim for array in arrays)
        shapes = [(1,) * (rank - array.ndim) + array.shape for array in arrays]
        return _multiply(np.array(shapes).max(axis=0)) if rank else 1.0
    return 0.0


def _multiply(sizes: _Array) -> float:
    return float(np.prod(np.maximum(sizes.astype(np.float64), 1)))


def _count_bytes(operands: _Operands) -> int:
    return sum(array.nbytes for array in operands.values())


def _is_read_here_only(scope: Scope, node: NodeProto, name: str) -> bool:
    owner = scope.resolve(name)
    readers = {id(use.node) for use in scope.uses_of(name)}
    return owner is not None and name not in owner.outputs and readers == {id(node)}


def _evaluate(model: OnnxModel, node: NodeProto, operands: _Operands) -> list[_Array] | None:
    inputs = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in operands.items()
    ]
    outputs = [helper.make_empty_tensor_value_info(name) for name in node.output]
    graph = helper.make_graph([node], "folded", inputs, outputs)
    opset = helper.make_opsetid("", model.opset)
    proto = helper.make_model(graph, opset_imports=[opset], ir_version=model.proto.ir_version)
    try:
        with np.errstate(all="ignore"):
            return [np.asarray(value) for value in ReferenceEvaluator(proto).run(None, operands)]
    except (ArithmeticError, AttributeError, IndexError, KeyError, *ONNX_ERRORS):
        return None  # it does not run, or only elsewhere: the node stays as it is


def _have_declared_types(scope: Scope, node: NodeProto, values: list[_Array]) -> bool:
    if len(values) != len(node.output) or not all(node.output):
        return False
    types = [DType.from_onnx(helper.np_dtype_to_tensor_dtype(v.dtype)) for v in values]
    declared = [scope.type_of(name) for name in node.output]
    return all(d in (DType.UNDEFINED, t) for d, t in zip(declared, types, strict=True))
