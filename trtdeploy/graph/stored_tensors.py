"""Which tensors of a loaded file stay on the disk, and whether each holds what its shape says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnx import ModelProto, TensorProto

from trtdeploy.core.dtypes import DType
from trtdeploy.core.errors import ModelFileError
from trtdeploy.graph.external_data import (
    count_elements,
    count_tensor_bytes,
    is_external,
    locate_external_data,
)
from trtdeploy.graph.model import OnnxModel, subgraphs_of, walk_graphs
from trtdeploy.graph.weights import Span, StoredWeight

INLINE_BYTES = 4096
"""Tensors up to this size live in the structure: shape inference needs to see small constants."""

_VALUE_FIELDS: dict[int, str] = {
    TensorProto.FLOAT: "float_data",
    TensorProto.DOUBLE: "double_data",
    TensorProto.INT64: "int64_data",
    TensorProto.UINT64: "uint64_data",
    TensorProto.UINT32: "uint64_data",
    TensorProto.STRING: "string_data",
    **dict.fromkeys(
        (TensorProto.INT32, TensorProto.INT16, TensorProto.INT8, TensorProto.UINT16,
         TensorProto.UINT8, TensorProto.BOOL, TensorProto.FLOAT16, TensorProto.BFLOAT16,
         TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E4M3FNUZ, TensorProto.FLOAT8E5M2,
         TensorProto.FLOAT8E5M2FNUZ),
        "int32_data",
    ),
}  # fmt: skip
"""Where a type's values lie when not in raw_data, one entry per element (onnx.proto)."""


def register_weights(model: OnnxModel, spans: Sequence[Span | None]) -> None:
    """Fill ``model.weights`` and check every tensor's size.

    Args:
        model: A model as parsed.
        spans: Per initializer of the main graph, where its raw data lies in the ONNX file;
            None for one that is small or external.

    Raises:
        ModelFileError: A tensor's data does not fit its shape, its external data is missing or
            unsafe, or two initializers have one name.
    """
    folder = model.path.parent
    seen: set[str] = set()
    for tensor, inline_span in zip(model.graph.initializer, spans, strict=True):
        if tensor.name in seen:
            raise ModelFileError(
                f"{model.path}: two initializers are named {tensor.name!r}",
                hint="Export the model again; every tensor needs a name of its own.",
            )
        seen.add(tensor.name)
        external = is_external(tensor)
        span = locate_external_data(tensor, folder) if external else inline_span
        if external and span is not None:
            model.data_files.add(span.path)
        if span is None:
            _check_size(tensor)
        elif span.length <= INLINE_BYTES:
            _read_into(tensor, span)
        else:
            _check_length(tensor, span.length)
            _forget_data(tensor)
            dtype = DType.from_onnx(tensor.data_type)
            model.weights[tensor.name] = StoredWeight(span, dtype, dtype)
    for tensor in _iterate_nested_tensors(model.proto):
        if is_external(tensor):
            span = locate_external_data(tensor, folder)
            model.data_files.add(span.path)
            _read_into(tensor, span)
        else:
            _check_size(tensor)


def _iterate_nested_tensors(proto: ModelProto) -> Iterator[TensorProto]:
    """Yield every tensor but the initializers of the main graph; these are small in practice."""
    graphs = list(walk_graphs(proto.graph))
    nodes = [node for function in proto.functions for node in function.node]
    for node in nodes:
        for body in subgraphs_of(node):
            graphs.extend(walk_graphs(body))
    for graph in graphs:
        if graph is not proto.graph:
            yield from graph.initializer
        for sparse in graph.sparse_initializer:
            yield from (sparse.values, sparse.indices)
        nodes.extend(graph.node)
    for node in nodes:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            if attribute.HasField("sparse_tensor"):
                yield from (attribute.sparse_tensor.values, attribute.sparse_tensor.indices)


def _read_into(tensor: TensorProto, span: Span) -> None:
    dtype = DType.from_onnx(tensor.data_type)
    data = b"".join(StoredWeight(span, dtype, dtype).iterate_bytes())
    _forget_data(tensor)
    tensor.raw_data = data


def _forget_data(tensor: TensorProto) -> None:
    tensor.ClearField("raw_data")
    tensor.ClearField("external_data")
    tensor.ClearField("data_location")


def _check_size(tensor: TensorProto) -> None:
    if tensor.HasField("raw_data"):
        _check_length(tensor, len(tensor.raw_data))
        return
    field = _VALUE_FIELDS.get(tensor.data_type)
    if field is None:
        return
    elements, found = count_elements(tensor), len(getattr(tensor, field))
    if elements != found:
        raise _wrong_size(tensor, f"{elements} values", found)


def _check_length(tensor: TensorProto, found: int) -> None:
    expected = count_tensor_bytes(tensor)
    if expected != found:
        raise _wrong_size(tensor, f"{expected} bytes", found)


def _wrong_size(tensor: TensorProto, expected: str, found: int) -> ModelFileError:
    return ModelFileError(
        f"tensor {tensor.name!r} should hold {expected} by its shape {list(tensor.dims)} and "
        f"type {DType.from_onnx(tensor.data_type).label}, but holds {found}",
        hint="The file is damaged; export it again.",
    )
