"""Sizes of a model's inner values once its inputs have concrete shapes."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import numpy as np
from onnx import GraphProto, helper, numpy_helper

from trtdeploy.graph.model import ONNX_ERRORS, OnnxModel, walk_graphs
from trtdeploy.graph.numpy_types import to_numpy_dtype
from trtdeploy.graph.shape_inference import (
    Dims,
    copy_structure,
    infer_with_values,
    read_shapes,
)
from trtdeploy.samples.synthetic.uses import Sizes


def infer_sizes(
    model: OnnxModel,
    shapes: Mapping[str, tuple[int, ...]],
    values: Mapping[str, tuple[int, ...]],
) -> dict[str, Sizes]:
    """Return the sizes of all values whose rank is known, by name; None where one is not known.

    Works on the structure alone. What cannot be inferred is left out: never raises.

    Args:
        model: Stays as it is: a copy of its structure is given sizes.
        shapes: Concrete shape of every input.
        values: Contents of the inputs that decide shapes.
    """
    proto = copy_structure(model)
    _set_inputs(proto.graph, model, shapes, values)
    with suppress(*ONNX_ERRORS):  # the sizes of constants still help
        proto = infer_with_values(proto)
    found: dict[str, Dims] = {t.name: tuple(t.dims) for t in model.graph.initializer}
    for graph in walk_graphs(proto.graph):
        found.update(read_shapes(graph))
    return {
        name: tuple(dim if isinstance(dim, int) else None for dim in dims)
        for name, dims in found.items()
    }


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
