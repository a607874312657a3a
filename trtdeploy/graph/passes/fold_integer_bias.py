"""FoldIntegerBiasPass: constants that TensorRT cannot dequantize become floating point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from onnx import NodeProto, numpy_helper

from trtdeploy.core.dtypes import DType
from trtdeploy.graph.attributes import integer_of
from trtdeploy.graph.constant_values import read_constant
from trtdeploy.graph.index import ModelIndex, Scope, build_index
from trtdeploy.graph.model import ONNX_DOMAINS, OnnxModel
from trtdeploy.graph.passes.drop_unused_constants import DropUnusedConstantsPass

_ZERO_POINT_SLOT = 2
_SHOWN = 3


@dataclass(frozen=True)
class FoldedConstant:
    """What becomes of one DequantizeLinear of a constant.

    Attributes:
        values: The numbers in the type of the scale; None when they are not known beforehand.
        obstacle: Why not, in words that follow "because"; empty when they are known.
    """

    values: npt.NDArray[np.generic] | None
    obstacle: str = ""


class FoldIntegerBiasPass:
    """Compute ``b = DequantizeLinear(constant, scale)`` where TensorRT cannot.

    Before: ``Conv(x, w, b)`` with ``b = DequantizeLinear(b_int32, s)``, as ONNX Runtime's
    quantizer writes biases; TensorRT dequantizes no type wider than 8 bits. Or
    ``Add(x, DequantizeLinear(1, s))`` with a constant of no axes, which its builder refuses
    (measured with TensorRT-RTX 1.7.1).
    After: ``Conv(x, w, b)`` with ``b`` a FLOAT initializer of the same bits: each integer becomes
    FLOAT and is multiplied by its scale, as ONNX Runtime does.
    Ensures: no such node is left, unless its result is an output of a graph, its scale is not
    constant, or its zero point is not 0. ``model.changes`` says what was folded.
    """

    def __call__(self, model: OnnxModel) -> None:
        """Rewrite ``model`` in place."""
        index = build_index(model)
        folded: dict[int, str] = {}
        for scope, node in index.nodes():
            if not needs_folding(scope, node):
                continue
            values = fold_constant(index, scope, node).values
            if values is not None:
                scope.graph.initializer.append(numpy_helper.from_array(values, node.output[0]))
                folded[id(node)] = node.name or node.output[0]
        if not folded:
            return
        # innermost first: rebuilding a graph copies its nodes, bodies included
        for scope in reversed(index.scopes):
            kept = [node for node in scope.nodes if id(node) not in folded]
            if len(kept) != len(scope.nodes):
                del scope.graph.node[:]
                scope.graph.node.extend(kept)
        DropUnusedConstantsPass()(model)
        model.changes.append(_describe(list(folded.values())))


def needs_folding(scope: Scope, node: NodeProto) -> bool:
    """True for a DequantizeLinear of int32 numbers, or of a constant without axes."""
    if node.op_type != "DequantizeLinear" or node.domain not in ONNX_DOMAINS:
        return False
    if len(node.input) <= 1 or not node.output:
        return False
    if scope.type_of(node.input[0]) is DType.INT32:
        return True
    constant = scope.constant_of(node.input[0])
    return constant is not None and not constant.dims


def fold_constant(index: ModelIndex, scope: Scope, node: NodeProto) -> FoldedConstant:
    """Return what a DequantizeLinear with zero point 0 computes, when that is known beforehand.

    ``FLOAT(integer) * scale``, each step rounded to FLOAT: bit for bit what ONNX Runtime computes
    (its optimisations off; tested).

    Args:
        index: The index of the model.
        scope: Where ``node`` lies.
        node: See ``needs_folding``.
    """
    numbers = read_constant(index.model, scope, node.input[0])
    scale = read_constant(index.model, scope, node.input[1])
    if numbers is None or scale is None:
        return FoldedConstant(None, "its integers or its scale are computed at run time")
    if len(node.input) > _ZERO_POINT_SLOT and node.input[_ZERO_POINT_SLOT]:
        zero_point = read_constant(index.model, scope, node.input[_ZERO_POINT_SLOT])
        if zero_point is None or np.count_nonzero(zero_point.astype(np.float32)):
            return FoldedConstant(None, "its zero point is not 0")
    if node.output[0] in scope.outputs:
        return FoldedConstant(None, "its result is an output of the graph")
    aligned = _align_scale(node, numbers.shape, scale)
    if aligned is None:
        return FoldedConstant(None, "its scales do not fit the shape of the integers")
    with np.errstate(over="ignore", invalid="ignore"):
        values = numbers.astype(np.float32) * aligned.astype(np.float32)
        return FoldedConstant(values.astype(scale.dtype))


def _align_scale(
    node: NodeProto, shape: tuple[int, ...], scale: npt.NDArray[np.generic]
) -> npt.NDArray[np.generic] | None:
    """Return the scales in a shape that broadcasts over the integers; None if there is none."""
    if scale.size == 1:
        return scale.reshape(())
    axis = integer_of(node, "axis", 1)
    axis = axis + len(shape) if axis < 0 else axis
    if scale.ndim != 1 or not 0 <= axis < len(shape) or scale.size != shape[axis]:
        return None
    return scale.reshape([scale.size if i == axis else 1 for i in range(len(shape))])


def _describe(names: list[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:_SHOWN])
    rest = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return (
        f"folded {len(names)} constant{'s' if len(names) > 1 else ''} behind DequantizeLinear "
        f"({shown}{rest}) to floating point, bit for bit"
    )
