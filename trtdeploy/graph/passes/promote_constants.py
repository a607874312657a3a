"""PromoteConstantsPass: Constant nodes and sparse tensors become dense initializers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from onnx import (
    AttributeProto,
    GraphProto,
    NodeProto,
    SparseTensorProto,
    TensorProto,
    helper,
    numpy_helper,
)

from trtdeploy.core.errors import ModelFileError
from trtdeploy.graph.model import ONNX_DOMAINS, OnnxModel, walk_graphs

_MAX_DENSE_ELEMENTS = 1 << 28


class PromoteConstantsPass:
    """Turn ``c = Constant()`` and sparse initializers into initializers ``c``, in every graph.

    One representation of constants lets every later pass look in one place; TensorRT and the
    ONNX version converter know no sparse tensors.
    Ensures: no Constant node is left, except where its output is a graph output or its value has
    no initializer form; no sparse initializer is left.
    """

    def __call__(self, model: OnnxModel) -> None:
        """Rewrite ``model`` in place.

        Raises:
            ModelFileError: A sparse tensor is damaged, or would fill gigabytes when dense.
        """
        for graph in walk_graphs(model.graph):
            _promote_nodes(graph)
            for sparse in graph.sparse_initializer:
                graph.initializer.append(_densify(sparse))
            del graph.sparse_initializer[:]


def _promote_nodes(graph: GraphProto) -> None:
    if not any(node.op_type == "Constant" for node in graph.node):
        return
    outputs = {value.name for value in graph.output}
    kept = []
    for node in graph.node:
        tensor = _read_constant(node) if _is_constant(node) else None
        if tensor is None or node.output[0] in outputs:
            kept.append(node)
            continue
        tensor.name = node.output[0]
        graph.initializer.append(tensor)
    del graph.node[:]
    graph.node.extend(kept)


def _is_constant(node: NodeProto) -> bool:
    return node.op_type == "Constant" and node.domain in ONNX_DOMAINS and len(node.output) > 0


def _read_constant(node: NodeProto) -> TensorProto | None:
    """Return the tensor of a Constant node; None for a form this version does not know."""
    for attribute in node.attribute:
        if attribute.type == AttributeProto.TENSOR:
            copied = TensorProto()
            copied.CopyFrom(attribute.t)
            return copied
        if attribute.type == AttributeProto.SPARSE_TENSOR:
            return _densify(attribute.sparse_tensor)
        value = helper.get_attribute_value(attribute)
        if attribute.name in ("value_float", "value_floats"):
            return _make_tensor(TensorProto.FLOAT, value)
        if attribute.name in ("value_int", "value_ints"):
            return _make_tensor(TensorProto.INT64, value)
        if attribute.name in ("value_string", "value_strings"):
            return _make_tensor(TensorProto.STRING, value)
    return None


def _make_tensor(data_type: int, value: Any) -> TensorProto:
    if isinstance(value, (list, tuple)):
        return helper.make_tensor("", data_type, [len(value)], value)
    return helper.make_tensor("", data_type, [], [value])


def _densify(sparse: SparseTensorProto) -> TensorProto:
    """Return the dense form; indices are flat, or one row of coordinates per value (onnx.proto)."""
    name, dims = sparse.values.name, tuple(sparse.dims)
    if min(dims, default=0) < 0 or math.prod(dims) > _MAX_DENSE_ELEMENTS:
        raise ModelFileError(
            f"sparse tensor {name!r} of shape {list(dims)} is too large to be made dense",
            hint="Export the model with dense weights; TensorRT reads no others.",
        )
    values = numpy_helper.to_array(sparse.values)
    indices = numpy_helper.to_array(sparse.indices)
    dense = np.zeros(dims, values.dtype)
    try:
        if indices.ndim == 1:
            dense.reshape(-1)[indices] = values
        else:
            dense[tuple(indices.T)] = values
    except (IndexError, ValueError) as error:
        raise ModelFileError(
            f"sparse tensor {name!r} has values outside its shape {list(dims)}: {error}",
            hint="The file is damaged; export it again.",
        ) from error
    return numpy_helper.from_array(dense, name)
