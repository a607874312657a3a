"""Words for a node whose inputs do not fit together."""

from __future__ import annotations

from onnx import NodeProto

from trtdeploy.preflight.context import CheckContext
from trtdeploy.preflight.inference import InferredShapes
from trtdeploy.preflight.shape_text import format_dims
from trtdeploy.preflight.symbols import find_symbol_axes, name_symbol

_SHOWN_INPUTS = 4


def describe_inputs(context: CheckContext, key: str, at: InferredShapes) -> str:
    """Return the sizes of a node's inputs, e.g. ``'hw' [2, 32, 16] and 'm3' [2, 48, 1]``."""
    node = context.find_node(key)
    names = [name for name in node.input if name] if node is not None else []
    shown = [f"{name!r} {format_dims(at.shape_of(name))}" for name in names[:_SHOWN_INPUTS]]
    return " and ".join(shown) or "its inputs"


def describe_origin(context: CheckContext, key: str, at: InferredShapes) -> str:
    """Return which axes of which model inputs the differing sizes come from; may be empty."""
    node = context.find_node(key)
    if node is None:
        return ""
    axes = find_symbol_axes(context.structure.specs.values())
    symbols = _differing_symbols(context, node)
    parts = []
    for symbol in symbols:
        places = axes.get(symbol, [])
        if not places:
            continue
        name, axis = places[0]
        dims = at.shape_of(name)
        size = dims[axis] if dims is not None and axis < len(dims) else "?"
        parts.append(f"{name_symbol(symbol, axes)} = {size}")
    return "; ".join(parts)


def _differing_symbols(context: CheckContext, node: NodeProto) -> list[str]:
    """Return symbols that occur in one input of the node but not in all of them."""
    shapes = [
        {dim for dim in context.symbolic.shape_of(name) or () if isinstance(dim, str)}
        for name in node.input
        if name
    ]
    if not shapes:
        return []
    everywhere = set.intersection(*shapes)
    differing = set.union(*shapes) - everywhere
    return sorted(differing or everywhere)
