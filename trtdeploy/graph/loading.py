"""Reading an ONNX file: structure into memory, large weights left where they are."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from google.protobuf.message import DecodeError
from onnx import GraphProto, ModelProto

from trtdeploy.core.errors import ModelFileError
from trtdeploy.graph.model import OnnxModel, walk_graphs
from trtdeploy.graph.stored_tensors import INLINE_BYTES, register_weights
from trtdeploy.graph.weights import Span
from trtdeploy.graph.wire import (
    GRAPH_INITIALIZER,
    LENGTH,
    MODEL_GRAPH,
    TENSOR_RAW_DATA,
    Field,
    WireError,
    encode_length_tag,
    iterate_fields,
)


def load_model(path: Path | str) -> OnnxModel:
    """Read an ONNX file without its large weights.

    Raises:
        ModelFileError: Not readable, not an ONNX model, cut short, or its external data is
            missing or points outside the model's folder.
    """
    path = Path(path)
    with _map_file(path) as data:
        try:
            structure, spans = _split_weights(data, path)
            proto = ModelProto.FromString(structure)
        except (WireError, DecodeError) as error:
            reason = f": {error}" if isinstance(error, WireError) else ""
            raise ModelFileError(
                f"{path} is not an ONNX model, or it is damaged{reason}",
                hint="Open it in Netron, or export it again.",
            ) from error
    if not proto.HasField("graph") or not (proto.graph.node or proto.graph.output):
        raise ModelFileError(
            f"{path} is not an ONNX model: it holds no graph",
            hint="Expected a file written by an ONNX exporter.",
        )
    _check_text(proto, path)
    model = OnnxModel(proto, path)
    register_weights(model, spans)
    return model


@contextmanager
def _map_file(path: Path) -> Iterator[memoryview]:
    try:
        if path.is_dir():
            raise ModelFileError(
                f"{path} is a folder; an ONNX file was expected",
                hint="Name the .onnx file inside it.",
            )
        if path.exists() and not path.is_file():
            raise ModelFileError(f"{path} is not a regular file; an ONNX file was expected")
        with path.open("rb") as file:
            if not file.seek(0, 2):
                raise ModelFileError(f"{path} is empty; an ONNX file was expected")
            with (
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
                memoryview(mapped) as view,
            ):
                yield view
    except OSError as error:
        raise ModelFileError(
            f"{path} cannot be read: {error.strerror}", hint="Check the path and its permissions."
        ) from error


def _split_weights(data: memoryview, path: Path) -> tuple[bytes, list[Span | None]]:
    """Return the model without large raw_data, and one span per initializer (None = inline)."""
    kept = bytearray()
    spans: list[Span | None] = []
    for field in iterate_fields(data, 0, len(data)):
        if field.number == MODEL_GRAPH and field.wire_type == LENGTH:
            graph = _split_graph(data, field, path, spans)
            kept += encode_length_tag(MODEL_GRAPH, len(graph)) + graph
        else:
            kept += data[field.begin : field.end]
    return bytes(kept), spans


def _split_graph(data: memoryview, graph: Field, path: Path, spans: list[Span | None]) -> bytearray:
    kept = bytearray()
    copied = graph.start
    for field in iterate_fields(data, graph.start, graph.end):
        if field.number != GRAPH_INITIALIZER or field.wire_type != LENGTH:
            continue
        raw = _find_large_raw_data(data, field)
        if raw is None:
            spans.append(None)
            continue
        spans.append(Span(path, raw.start, raw.end - raw.start))
        rest = bytes(data[field.start : raw.begin]) + bytes(data[raw.end : field.end])
        kept += data[copied : field.begin]
        kept += encode_length_tag(GRAPH_INITIALIZER, len(rest)) + rest
        copied = field.end
        _forget_pages(data)
    kept += data[copied : graph.end]
    return kept


def _forget_pages(data: memoryview) -> None:
    """Give back what reading one header has mapped: in the page cache that may be megabytes."""
    if isinstance(data.obj, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        data.obj.madvise(mmap.MADV_DONTNEED)


def _find_large_raw_data(data: memoryview, tensor: Field) -> Field | None:
    if tensor.end - tensor.start <= INLINE_BYTES:
        return None
    found = None
    for field in iterate_fields(data, tensor.start, tensor.end):
        if field.number == TENSOR_RAW_DATA and field.wire_type == LENGTH:
            found = field
    return found if found and found.end - found.start > INLINE_BYTES else None


def _check_text(proto: ModelProto, path: Path) -> None:
    """Refuse names that are not UTF-8; protobuf hands those out as bytes, or raises on access."""
    try:
        decoded = all(isinstance(text, str) for text in _iterate_text(proto))
    except UnicodeDecodeError:
        decoded = False
    if not decoded:
        raise ModelFileError(
            f"{path} is damaged: a name in it is not text in UTF-8", hint="Export it again."
        )


def _iterate_text(proto: ModelProto) -> Iterator[object]:
    for opset in proto.opset_import:
        yield opset.domain
    for entry in proto.metadata_props:
        yield from (entry.key, entry.value)
    for graph in walk_graphs(proto.graph):
        yield from _iterate_graph_text(graph)


def _iterate_graph_text(graph: GraphProto) -> Iterator[object]:
    for node in graph.node:
        yield from (node.name, node.op_type, node.domain)
        yield from node.input
        yield from node.output
        for attribute in node.attribute:
            yield attribute.name
    for tensor in graph.initializer:
        yield tensor.name
    for values in (graph.input, graph.output, graph.value_info):
        for value in values:
            yield value.name
            for dim in value.type.tensor_type.shape.dim:
                yield dim.dim_param
