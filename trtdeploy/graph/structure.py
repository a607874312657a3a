"""Whether two models are the same network, whatever their weights hold."""

from __future__ import annotations

from onnx import GraphProto, TensorProto

from trtdeploy.graph.model import OnnxModel, walk_graphs

_DATA_FIELDS = (
    "raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data",
    "string_data", "external_data", "data_location",
)  # fmt: skip


def has_same_structure(first: OnnxModel, second: OnnxModel) -> bool:
    """True when nodes, names, attributes, and names, types and shapes of constants are equal."""
    return first.opset == second.opset and _describe(first) == _describe(second)


def _describe(model: OnnxModel) -> bytes:
    graph = GraphProto()
    graph.CopyFrom(model.graph)
    for scope in walk_graphs(graph):
        del scope.value_info[:]
        constants = sorted(scope.initializer, key=lambda tensor: tensor.name)
        del scope.initializer[:]
        scope.initializer.extend(map(_without_data, constants))
    for tensor in graph.initializer:
        weight = model.weights.get(tensor.name)
        if weight is not None:
            tensor.data_type = weight.stored_as.code
    return graph.SerializeToString(deterministic=True)


def _without_data(tensor: TensorProto) -> TensorProto:
    bare = TensorProto()
    bare.CopyFrom(tensor)
    for field in _DATA_FIELDS:
        bare.ClearField(field)
    return bare
