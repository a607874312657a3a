"""ONNX shape inference: what it is given, what it says, and contents of shapes that it follows."""

from __future__ import annotations

from onnx import GraphProto, ModelProto, ValueInfoProto, helper, shape_inference

from trtdeploy.core.tensors import Dim
from trtdeploy.graph.model import OnnxModel, walk_graphs

Dims = tuple[Dim | None, ...]
"""Sizes of a value; None is a size that inference says nothing about."""

LARGEST_FOLLOWED = 1 << 16
"""Elements of a 1-D value up to which contents are followed."""


def copy_structure(model: OnnxModel) -> ModelProto:
    """Return a copy that says only what shape inference can rely on.

    Weights on the disk become inputs, since only their shapes matter. Declared shapes of inner
    values and outputs are dropped: they may be stale.
    """
    proto = ModelProto()
    proto.CopyFrom(model.proto)
    declared = {value.name for value in proto.graph.input}
    kept = []
    for tensor in proto.graph.initializer:
        if tensor.name not in model.weights:
            kept.append(tensor)
        elif tensor.name not in declared:
            made = helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
            proto.graph.input.append(made)
    del proto.graph.initializer[:]
    proto.graph.initializer.extend(kept)
    for graph in walk_graphs(proto.graph):
        del graph.value_info[:]
    for output in proto.graph.output:
        output.ClearField("type")
    return proto


def read_shapes(graph: GraphProto) -> dict[str, Dims]:
    """Return the sizes of every constant and value of one graph whose rank is declared."""
    shapes: dict[str, Dims] = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    for values in (graph.input, graph.value_info, graph.output):
        for value in values:
            if value.type.tensor_type.HasField("shape"):
                shapes[value.name] = _read_dims(value)
    return shapes


def require_known(dims: Dims) -> tuple[int, ...] | None:
    """Return the sizes when all of them are numbers."""
    known = tuple(dim for dim in dims if isinstance(dim, int))
    return known if len(known) == len(dims) else None


def _read_dims(value: ValueInfoProto) -> Dims:
    return tuple(
        int(dim.dim_value) if dim.HasField("dim_value") else str(dim.dim_param) or None
        for dim in value.type.tensor_type.shape.dim
    )


def infer_with_values(proto: ModelProto, *, strict: bool = False) -> ModelProto:
    """Return the model with inferred shapes, those that follow from contents of values included.

    ONNX's data propagation makes one entry per element of every 1-D value, so a file of a few bytes
    (``ConstantOfShape`` of 2**40 elements) could ask for terabytes. A first inference without it
    shows how large such values are.

    Args:
        proto: The structure of a model; it is not changed.
        strict: Raise for what is wrong in the graph instead of leaving it out.

    Raises:
        ONNX_ERRORS: What ``onnx.shape_inference.infer_shapes`` raises.
    """
    inferred = shape_inference.infer_shapes(proto, strict_mode=strict)
    if _find_longest(inferred) > LARGEST_FOLLOWED:
        return inferred
    return shape_inference.infer_shapes(proto, strict_mode=strict, data_prop=True)


def _find_longest(proto: ModelProto) -> int:
    longest = 0
    for graph in walk_graphs(proto.graph):
        for values in (graph.input, graph.value_info, graph.output):
            for value in values:
                dims = value.type.tensor_type.shape.dim
                if len(dims) == 1:
                    longest = max(longest, dims[0].dim_value)
    return longest
