"""Words for a node whose inputs do not fit together."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from onnx import NodeProto

from trtdeploy.graph.shape_inference import Dims
from trtdeploy.preflight.context import CheckContext
from trtdeploy.preflight.inference import InferredShapes
from trtdeploy.preflight.symbols import find_symbol_axes
from trtdeploy.preflight.text import format_dims

_SHOWN_INPUTS = 4


def describe_inputs(context: CheckContext, key: str, at: InferredShapes) -> str:
    """Return the sizes of a node's inputs, e.g. ``'hw' [2, 32, 16] and 'm3' [2, 48, 1]``."""
    node = context.find_node(key)
    names = [name for name in node.input if name] if node is not None else []
    shown = [f"{name!r} {format_dims(at.shape_of(name))}" for name in names[:_SHOWN_INPUTS]]
    return " and ".join(shown) or "its inputs"


def describe_origin(context: CheckContext, key: str, at: InferredShapes) -> str:
    """Return which axes of which model inputs the conflicting sizes come from.

    Falls back to the sizes of all dynamic inputs when the sizes were computed on the way.
    """
    specs = context.structure.specs
    axes = find_symbol_axes(specs.values())
    node = context.find_node(key)
    symbols = dict.fromkeys(_conflicting_symbols(context, node, at)) if node is not None else {}
    origins = [
        f"{name!r} axis {axis} = {_size_of(at, name, axis)}"
        for symbol in symbols
        for name, axis in axes.get(symbol, [])
    ]
    if not origins:
        origins = [
            f"{name!r} {format_dims(at.shape_of(name))}"
            for name, spec in specs.items()
            if spec.is_dynamic
        ]
    return ", ".join(origins[:_SHOWN_INPUTS])


def _conflicting_symbols(
    context: CheckContext, node: NodeProto, at: InferredShapes
) -> Iterator[str]:
    """Yield the symbols behind the axes, counted from the right, on which two inputs differ."""
    names = [name for name in node.input if at.shape_of(name)]
    for left, right in pairwise(names):
        ends = [reversed(at.shape_of(name) or ()) for name in (left, right)]
        sizes = zip(*ends, strict=False)
        for back, (first, second) in enumerate(sizes, start=1):
            if first == second or 1 in (first, second):
                continue
            for name in (left, right):
                yield from _symbol_at(context.symbolic.shape_of(name), back)


def _symbol_at(dims: Dims | None, back: int) -> Iterator[str]:
    if dims is not None and back <= len(dims) and isinstance(dims[-back], str):
        yield str(dims[-back])


def _size_of(at: InferredShapes, name: str, axis: int) -> object:
    dims = at.shape_of(name)
    return dims[axis] if dims is not None and axis < len(dims) else "?"
