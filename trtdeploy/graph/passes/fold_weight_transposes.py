"""FoldWeightTransposesPass: weights that are only moved about become constants."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from onnx import NodeProto, numpy_helper

from trtdeploy.core.dtypes import DType
from trtdeploy.graph.attributes import integer_of, value_of
from trtdeploy.graph.constant_values import read_constant
from trtdeploy.graph.index import ModelIndex, build_index
from trtdeploy.graph.layer_operands import add_initializer
from trtdeploy.graph.model import ONNX_DOMAINS, OnnxModel
from trtdeploy.graph.passes.drop_unused_constants import DropUnusedConstantsPass

LIMIT_BYTES = 256 << 20
"""Larger weights stay as they are: folding needs them in memory."""

_LAYERS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
_FLOATS = frozenset({DType.FLOAT16, DType.BFLOAT16, DType.FLOAT64, DType.FLOAT32})

_Array = npt.NDArray[np.generic]


class FoldWeightTransposesPass:
    """Compute ``Transpose(w)`` and its kin in front of a layer, in the main graph.

    Before: ``MatMul(x, t)`` with ``t = Transpose(Reshape(w))``, as PyTorch and Paddle exports
    write weights that several layers share, or that were stored in FP16 (``Cast``).
    After: ``MatMul(x, t)`` with ``t`` an initializer, which can be stored in 8 bits. Values are the
    same in every bit.
    Ensures: Transpose, Reshape, Squeeze, Unsqueeze, Flatten, Identity and Cast to FP32 between a
    constant up to 256 MiB and a Conv, ConvTranspose, Gemm or MatMul are gone, unless their result
    is an output. ``model.changes`` says how many weights were folded.
    """

    def __call__(self, model: OnnxModel) -> None:
        """Rewrite ``model`` in place; it must be normalised."""
        if not any(node.op_type in _MOVES for node in model.graph.node):
            return
        index = build_index(model)
        folded: set[str] = set()
        for node in index.main.nodes:
            if node.op_type in _LAYERS and node.domain in ONNX_DOMAINS:
                folded.update(name for name in node.input[:2] if _fold(index, name))
        if not folded:
            return
        _remove_unread_moves(index, folded)
        DropUnusedConstantsPass()(model)
        weights = "1 weight" if len(folded) == 1 else f"{len(folded)} weights"
        model.changes.append(f"{weights} transposed, reshaped or cast once instead of at run time")


def _fold(index: ModelIndex, name: str) -> bool:
    """Make an initializer of a moved constant; True when ``name`` now is one."""
    main = index.main
    if name in main.outputs or name not in main.producers:
        return False
    values = _compute(index, name)
    if values is None:
        return False
    del main.producers[name]
    add_initializer(index, numpy_helper.from_array(np.ascontiguousarray(values), name))
    return True


def _compute(index: ModelIndex, name: str) -> _Array | None:
    """Return the value of a constant behind any number of moves; None for anything else."""
    moves: list[NodeProto] = []
    while (node := index.main.producers.get(name)) is not None:
        if node.op_type not in _MOVES or node.domain not in ONNX_DOMAINS:
            return None
        moves.append(node)
        name = node.input[0]
    tensor = index.main.initializers.get(name)
    if tensor is None or DType.from_onnx(tensor.data_type) not in _FLOATS or not moves:
        return None
    values = read_constant(index.model, index.main, name, limit_bytes=LIMIT_BYTES)
    for node in reversed(moves):
        values = None if values is None else _move(index, node, values)
    return values


def _move(index: ModelIndex, node: NodeProto, values: _Array) -> _Array | None:
    """Return what one node makes of ``values`` (ONNX operator specification)."""
    try:
        return _MOVES[node.op_type](index, node, values)
    except (ValueError, IndexError):  # a damaged node; the checks of the model name it
        return None


def _transpose(_: ModelIndex, node: NodeProto, values: _Array) -> _Array:
    order = value_of(node, "perm")
    return values.transpose(order if isinstance(order, tuple) else None)


def _cast(_: ModelIndex, node: NodeProto, values: _Array) -> _Array | None:
    to_fp32 = integer_of(node, "to", 0) == DType.FLOAT32.code
    with np.errstate(over="ignore"):
        return values.astype(np.float32) if to_fp32 else None


def _flatten(_: ModelIndex, node: NodeProto, values: _Array) -> _Array:
    rows = math.prod(values.shape[: integer_of(node, "axis", 1)])
    return values.reshape(rows, values.size // max(rows, 1))


def _keep(_: ModelIndex, __: NodeProto, values: _Array) -> _Array:
    return values


def _reshape(index: ModelIndex, node: NodeProto, values: _Array) -> _Array | None:
    shape = _read_numbers(index, node)
    if shape is not None and not integer_of(node, "allowzero", 0):
        shape = [values.shape[axis] if size == 0 else size for axis, size in enumerate(shape)]
    return None if shape is None else values.reshape(shape)


def _squeeze(index: ModelIndex, node: NodeProto, values: _Array) -> _Array | None:
    axes = _read_numbers(index, node)
    return None if axes is None else values.squeeze(tuple(axes))


def _unsqueeze(index: ModelIndex, node: NodeProto, values: _Array) -> _Array | None:
    axes = _read_numbers(index, node)
    return None if axes is None else np.expand_dims(values, tuple(axes))


_MOVES: dict[str, Callable[[ModelIndex, NodeProto, _Array], _Array | None]] = {
    "Transpose": _transpose,
    "Reshape": _reshape,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Flatten": _flatten,
    "Identity": _keep,
    "Cast": _cast,
}


def _read_numbers(index: ModelIndex, node: NodeProto) -> list[int] | None:
    """Return the shape of a Reshape or the axes of a Squeeze or Unsqueeze, None if unknown."""
    given = value_of(node, "axes")
    if isinstance(given, tuple):
        return list(given)
    if len(node.input) < 2 or not node.input[1]:  # noqa: PLR2004 - the second operand
        return None
    numbers = read_constant(index.model, index.main, node.input[1])
    return None if numbers is None else [int(number) for number in numbers.reshape(-1)]


def _remove_unread_moves(index: ModelIndex, folded: set[str]) -> None:
    """Remove the nodes whose results are initializers now, then those that only they read."""
    main = index.main
    reads = Counter(name for _, node in index.nodes() for name in node.input)
    reads.update(main.outputs)
    for scope in index.scopes:
        reads.update(scope.outputs)
    kept: list[NodeProto] = []
    for node in reversed(main.nodes):
        is_move = node.op_type in _MOVES and node.domain in ONNX_DOMAINS
        if is_move and (node.output[0] in folded or not reads[node.output[0]]):
            reads.subtract(node.input)
        else:
            kept.append(node)
    del main.graph.node[:]
    main.graph.node.extend(reversed(kept))
