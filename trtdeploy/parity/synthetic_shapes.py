"""Sizes of a model's inner values once its inputs have concrete shapes."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import numpy as np
from onnx import GraphProto, ModelProto, helper, numpy_helper

from trtdeploy.graph.model import ONNX_ERRORS, OnnxModel, walk_graphs
from trtdeploy.graph.value_propagation import infer_with_values
from trtdeploy.parity.samples_axes import to_numpy_dtype
from trtdeploy.parity.synthetic_operators import Sizes


def infer_sizes(
    model: OnnxModel,
    shapes: Mapping[str, tuple[int, ...]],
    values: Mapping[str, tuple[int, ...]],
) -> dict[str, Sizes]:
    """Return the sizes of all values whose rank is known, by name; None where one is not known.

    Works on the structure alone. What cannot be inferred is left out: never raises.

    Args:
        model: The model.
        shapes: Concrete shape of every input.
        values: Contents of the inputs that decide shapes.
    """
    proto = ModelProto()
    proto.CopyFrom(model.proto)
    _forget_weights(proto.graph, model)
    for graph in walk_graphs(proto.graph):
        del graph.value_info[:]  # may be stale, and is symbolic at best
    _set_inputs(proto.graph, model, shapes, values)
    with suppress(*ONNX_ERRORS):  # the sizes of constants still help
        proto = infer_with_values(proto)
    return _read_sizes(proto, model)


def _forget_weights(graph: GraphProto, model: OnnxModel) -> None:
    """Turn weights that lie on the disk into inputs: only their shapes matter."""
    kept = []
    for tensor in graph.initializer:
        if tensor.name in model.weights:
            dims = list(tensor.dims)
            graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, dims))
        else:
            kept.append(tensor)
    del graph.initializer[:]
    graph.initializer.extend(kept)


def _set_inputs(
    graph: GraphProto,
    model: OnnxModel,
    shapes: Mapping[str, tuple[int, ...]],
    values: Mapping[str, tuple[int, ...]],
) -> None:
    types = {spec.name: spec.dtype for spec in model.input_specs()}
    for value in graph.input:
        if value.name not in types or value.name not in shapes:
            continue
        code = value.type.tensor_type.elem_type
        shape = shapes[value.name]
        value.CopyFrom(helper.make_tensor_value_info(value.name, code, shape))
        if value.name in values:
            contents = np.array(values[value.name], to_numpy_dtype(types[value.name]))
            tensor = numpy_helper.from_array(contents.reshape(shape), value.name)
            graph.initializer.append(tensor)


def _read_sizes(proto: ModelProto, model: OnnxModel) -> dict[str, Sizes]:
    found: dict[str, Sizes] = {
        tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer
    }
    for graph in walk_graphs(proto.graph):
        found.update((tensor.name, tuple(tensor.dims)) for tensor in graph.initializer)
        for values in (graph.input, graph.value_info, graph.output):
            for value in values:
                tensor_type = value.type.tensor_type
                if tensor_type.HasField("shape"):
                    found[value.name] = tuple(
                        dim.dim_value if dim.HasField("dim_value") else None
                        for dim in tensor_type.shape.dim
                    )
    return found
