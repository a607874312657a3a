"""An exporter's graph made presentable: telling names, no paths of the machine it came from."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from onnx import FunctionProto, GraphProto, NodeProto

from trtdeploy.core.errors import InputError
from trtdeploy.graph.model import OnnxModel, walk_graphs, walk_nodes

WRAPPER: Final = "trtdeploy_model"
"""Attribute under which our own module holds the user's; it shows in paths until removed."""

_SCOPES_KEY = "pkg.torch.onnx.name_scopes"
_OWNER = -2


def strip_wrapper(path: str) -> str:
    """Return a dotted module path as the user knows it, without our wrapper's part."""
    return "" if path == WRAPPER else path.removeprefix(f"{WRAPPER}.")


def name_nodes_by_module(model: OnnxModel) -> None:
    """Call nodes ``/layer1/0/conv1/Conv`` after the module they come from, where that is known."""
    taken: set[str] = set()
    for node in walk_nodes(model.graph):
        path = _read_module_path(node)
        stem = "/".join(["", *filter(None, path.split(".")), node.op_type])
        name, count = stem, 0
        while name in taken:
            count += 1
            name = f"{stem}_{count}"
        taken.add(name)
        node.name = name


def _read_module_path(node: NodeProto) -> str:
    text = next((e.value for e in node.metadata_props if e.key == _SCOPES_KEY), "")
    if text:
        try:
            scopes = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            scopes = ()
        return strip_wrapper(str(scopes[_OWNER])) if len(scopes) >= -_OWNER else ""
    # the TorchScript exporter names nodes /trtdeploy_model/layer1/layer1.0/conv1/Conv
    parts = node.name.split("/")[1:-1]
    return ".".join(_shorten_parts([part for part in parts if part != WRAPPER]))


def _shorten_parts(parts: Sequence[str]) -> list[str]:
    """Drop the owner that a scope repeats: ``layer1/layer1.0`` is ``layer1/0``."""
    short: list[str] = []
    for index, part in enumerate(parts):
        owner = f"{parts[index - 1]}." if index else ""
        short.append(part.removeprefix(owner) if owner and part.startswith(owner) else part)
    return short


def rename_weights(model: OnnxModel) -> None:
    """Call weights as the user's module does: ``layer1.0.weight``."""
    names = {tensor.name for tensor in model.graph.initializer}
    new = {
        name: short
        for name in names
        if (short := strip_wrapper(name)) != name and short and short not in names
    }
    for tensor in model.graph.initializer:
        tensor.name = new.get(tensor.name, tensor.name)
    model.weights = {new.get(name, name): weight for name, weight in model.weights.items()}
    for node in walk_nodes(model.graph):
        for position, name in enumerate(node.input):
            if name in new:
                node.input[position] = new[name]


def strip_origins(model: OnnxModel) -> None:
    """Remove stack traces, which hold file paths, and sizes of intermediates in traced symbols."""
    del model.proto.metadata_props[:]
    model.proto.ClearField("doc_string")
    for graph in walk_graphs(model.graph):
        _strip(graph)
        del graph.value_info[:]
    for function in model.proto.functions:
        _strip(function)


def _strip(graph: GraphProto | FunctionProto) -> None:
    groups: list[Iterable[object]] = [graph.node]
    if isinstance(graph, GraphProto):
        groups += [graph.initializer, graph.input, graph.output]
    for thing in [graph, *(entry for group in groups for entry in group)]:
        thing.ClearField("doc_string")  # type: ignore[attr-defined]
        if "metadata_props" in thing.DESCRIPTOR.fields_by_name:  # type: ignore[attr-defined]
            thing.ClearField("metadata_props")  # type: ignore[attr-defined]


def declare_inputs(model: OnnxModel, dynamic: Mapping[str, Mapping[int, str]]) -> None:
    """Give the axes of inputs the user's symbols.

    Raises:
        InputError: An axis that was asked to vary has one size in the file.
    """
    for value in model.graph.input:
        for axis, symbol in dynamic.get(value.name, {}).items():
            dim = value.type.tensor_type.shape.dim[axis]
            if dim.HasField("dim_value"):
                raise InputError(
                    f"{symbol!r} (axis {axis} of {value.name!r}) was asked to vary, but the "
                    f"exporter fixed it to {dim.dim_value}, the example's size",
                    hint="Look in the model for a number where x.shape belongs.",
                )
            dim.dim_param = symbol
