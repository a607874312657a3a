"""Writing an ONNX file: the structure from memory, the weights streamed chunk by chunk."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from google.protobuf.message import Message
from onnx import ModelProto, TensorProto

from trtdeploy.core.errors import UsageError
from trtdeploy.graph.model import OnnxModel
from trtdeploy.graph.weights import StoredWeight
from trtdeploy.graph.wire import (
    GRAPH_INITIALIZER,
    MODEL_GRAPH,
    TENSOR_RAW_DATA,
    encode_length_tag,
)

SINGLE_FILE_BYTES = (1 << 31) - (1 << 24)
"""Above this the weights get a data file: a protobuf message ends at 2 GiB (16 MiB in hand)."""

_ALIGNMENT = 4096
_Heavy = tuple[TensorProto, StoredWeight]


def save_model(model: OnnxModel, path: Path, *, single_file_bytes: int = SINGLE_FILE_BYTES) -> None:
    """Write ``model`` to ``path``; large models get ``<path name>.data`` beside it.

    The caller owns atomicity: write into a temporary folder and rename that.

    Args:
        model: The model; it is not changed.
        path: File to write. An existing file is replaced.
        single_file_bytes: Models that would be larger than this get a data file.

    Raises:
        UsageError: A file to be written is one that the weights are read from.
        ModelFileError: The weights cannot be read any more.
    """
    shell, heavy = _take_apart(model)
    if not heavy or shell.ByteSize() + model.weight_bytes <= single_file_bytes:
        _refuse_own_source(model, path)
        _write_single_file(shell, heavy, path)
        return
    data_path = path.with_name(path.name + ".data")
    _refuse_own_source(model, path, data_path)
    with data_path.open("wb") as file:
        for tensor, weight in heavy:
            offset = -(-file.tell() // _ALIGNMENT) * _ALIGNMENT
            file.seek(offset)
            _refer_to_data(tensor, data_path.name, offset, weight.stored_bytes)
            _stream(weight, file)
        _flush(file)
    shell.graph.initializer.extend(tensor for tensor, _ in heavy)
    with path.open("wb") as file:
        file.write(_encode(shell))
        _flush(file)


def _refuse_own_source(model: OnnxModel, *targets: Path) -> None:
    """Opening a file for writing empties it, weights still to be read included."""
    sources = {weight.span.path.resolve() for weight in model.weights.values()}
    for target in targets:
        if target.resolve() in sources:
            raise UsageError(
                f"{target} holds weights of the model that would be written over it",
                hint="Choose another output path.",
            )


def _take_apart(model: OnnxModel) -> tuple[ModelProto, list[_Heavy]]:
    """Return a copy without the large initializers, and those, still without data."""
    shell = ModelProto()
    shell.CopyFrom(model.proto)
    heavy: list[_Heavy] = []
    light: list[TensorProto] = []
    for tensor in model.graph.initializer:
        weight = model.weights.get(tensor.name)
        if weight is None:
            light.append(tensor)
            continue
        header = TensorProto()
        header.CopyFrom(tensor)
        header.data_type = weight.stored_as.code
        heavy.append((header, weight))
    del shell.graph.initializer[:]
    shell.graph.initializer.extend(light)
    return shell, heavy


def _write_single_file(shell: ModelProto, heavy: list[_Heavy], path: Path) -> None:
    """Write model fields, then one graph field: its structure followed by the large initializers.

    Field order inside a message is free in protobuf, so readers see an ordinary model.
    """
    structure = _encode(shell.graph)
    shell.ClearField("graph")
    headers = [_encode_header(tensor, weight) for tensor, weight in heavy]
    total = len(structure) + sum(
        len(header) + weight.stored_bytes
        for header, (_, weight) in zip(headers, heavy, strict=True)
    )
    with path.open("wb") as file:
        file.write(_encode(shell))
        file.write(encode_length_tag(MODEL_GRAPH, total))
        file.write(structure)
        for header, (_, weight) in zip(headers, heavy, strict=True):
            file.write(header)
            _stream(weight, file)
        _flush(file)


def _encode_header(tensor: TensorProto, weight: StoredWeight) -> bytes:
    """Return all bytes of a graph's initializer field up to the values themselves."""
    fields = _encode(tensor) + encode_length_tag(TENSOR_RAW_DATA, weight.stored_bytes)
    return encode_length_tag(GRAPH_INITIALIZER, len(fields) + weight.stored_bytes) + fields


def _encode(message: Message) -> bytes:
    encoded: bytes = message.SerializeToString(deterministic=True)
    return encoded


def _refer_to_data(tensor: TensorProto, location: str, offset: int, length: int) -> None:
    tensor.data_location = TensorProto.EXTERNAL
    entries = {"location": location, "offset": str(offset), "length": str(length)}
    for key, value in entries.items():
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value


def _stream(weight: StoredWeight, file: BinaryIO) -> None:
    for chunk in weight.iterate_bytes():
        file.write(chunk)


def _flush(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
