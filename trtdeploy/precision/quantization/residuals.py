"""Residual connections: which operand of an Add is read in 8 bits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onnx import NodeProto

from trtdeploy.core.dtypes import DType
from trtdeploy.core.number_formats import QuantizedType
from trtdeploy.graph.index import ModelIndex, Scope
from trtdeploy.graph.model import ONNX_DOMAINS
from trtdeploy.precision.quantization.layers import CONV, CONV_TRANSPOSE, LAYER_OPERATORS

_OPERANDS = 2


def find_residuals(
    index: ModelIndex, kinds: Mapping[str, QuantizedType]
) -> Iterator[tuple[str, int, QuantizedType]]:
    """Yield each residual Add, the slot of its skip branch, and the 8-bit type.

    An Add of two activations is residual when one of them is the result of a quantized
    convolution that nobody else reads. The compiler adds the other inside that convolution; it can
    take it in 8 bits, while a pair on the convolution's own result would split the two. Where
    both come from convolutions, the skip branch is the one with fewer layers before it.

    Args:
        index: The model.
        kinds: The 8-bit type of each quantized layer.
    """
    main = index.main
    depths: dict[str, int] | None = None
    for node in main.nodes:
        if node.op_type != "Add" or node.domain not in ONNX_DOMAINS:
            continue
        if len(set(node.input)) != _OPERANDS or not all(
            is_activation(main, name) for name in node.input
        ):
            continue
        found = [_find_convolution(main, name, kinds) for name in node.input]
        if not any(found):
            continue
        if all(found):
            depths = depths or _measure_depths(main)
            skip = 0 if depths[node.input[0]] < depths[node.input[1]] else 1
        else:
            skip = 1 if found[0] else 0
        convolution = found[1 - skip]
        if convolution is not None:
            yield node.name, skip, kinds[convolution.name]


def is_activation(main: Scope, name: str) -> bool:
    """True for an FP32 value that is no constant."""
    return main.constant_of(name) is None and main.type_of(name) is DType.FLOAT32


def _find_convolution(
    main: Scope, name: str, kinds: Mapping[str, QuantizedType]
) -> NodeProto | None:
    """Return the quantized convolution that computes ``name`` for one reader alone."""
    node = main.producers.get(name)
    if node is None or node.op_type not in (CONV, CONV_TRANSPOSE) or node.name not in kinds:
        return None
    return node if len(main.uses.get(name, [])) == 1 and name not in main.outputs else None


def _measure_depths(main: Scope) -> dict[str, int]:
    """Return for each value the largest number of layers on a way to it."""
    depths: dict[str, int] = {}
    for node in main.nodes:
        depth = max((depths.get(name, 0) for name in node.input), default=0)
        depth += node.op_type in LAYER_OPERATORS
        depths.update({name: depth for name in node.output if name})
    return depths
