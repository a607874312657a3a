"""Where a model may keep its weights outside the ONNX file, and the checks that make that safe."""

from __future__ import annotations

import math
import stat
from pathlib import Path, PurePosixPath

from onnx import TensorProto

from trtdeploy.core.dtypes import DType
from trtdeploy.core.errors import ModelFileError
from trtdeploy.graph.weights import Span


def is_external(tensor: TensorProto) -> bool:
    """True when the tensor's bytes lie in another file."""
    return tensor.data_location == TensorProto.EXTERNAL


def count_elements(tensor: TensorProto) -> int:
    """Return the number of elements the tensor's shape implies.

    Raises:
        ModelFileError: A negative dimension.
    """
    if any(dim < 0 for dim in tensor.dims):
        raise ModelFileError(
            f"tensor {tensor.name!r} has a negative dimension: {list(tensor.dims)}"
        )
    return math.prod(tensor.dims)


def count_tensor_bytes(tensor: TensorProto) -> int:
    """Return the size the tensor's shape and type imply.

    Raises:
        ModelFileError: A negative dimension, or a type without a fixed width.
    """
    bits = DType.from_onnx(tensor.data_type).bits
    if not bits:
        raise ModelFileError(
            f"tensor {tensor.name!r} has raw data, which its type "
            f"({tensor.data_type} in onnx.proto) cannot have"
        )
    return (count_elements(tensor) * bits + 7) // 8


def locate_external_data(tensor: TensorProto, folder: Path) -> Span:
    """Return where an external tensor lies, after checking that reading it is safe.

    Args:
        tensor: A tensor with ``data_location`` EXTERNAL.
        folder: The folder of the ONNX file; nothing outside it is ever opened.

    Raises:
        ModelFileError: The location leaves the folder, is not a regular file, or is too short.
    """
    # str(): protobuf hands out bytes where a file holds text that is not UTF-8
    keys = {str(entry.key): str(entry.value) for entry in tensor.external_data}
    location = keys.get("location", "")
    path = _resolve_inside(tensor.name, location, folder)
    expected = count_tensor_bytes(tensor)
    try:
        offset, length = int(keys.get("offset") or 0), int(keys.get("length") or expected)
    except ValueError as error:
        raise ModelFileError(
            f"tensor {tensor.name!r} has external data whose offset or length is not a number"
        ) from error
    if length != expected:
        raise ModelFileError(
            f"tensor {tensor.name!r} should hold {expected} bytes by its shape and type, "
            f"but its external data entry says {length}"
        )
    size = path.stat().st_size
    if offset < 0 or offset + length > size:
        raise ModelFileError(
            f"tensor {tensor.name!r} needs bytes {offset} to {offset + length} of "
            f"{location!r}, which has only {size}",
            hint="The data file is cut short or belongs to another model; copy it again.",
        )
    return Span(path, offset, length)


def _resolve_inside(name: str, location: str, folder: Path) -> Path:
    relative = PurePosixPath(location.replace("\\", "/"))
    root = folder.resolve()
    outside = ModelFileError(
        f"tensor {name!r} points to {location!r}, which is outside the model's folder {folder}",
        hint="External data must lie beside the ONNX file; such a path is refused for safety.",
    )
    if not location or "\0" in location or relative.is_absolute() or ".." in relative.parts:
        raise outside
    path = folder / relative
    resolved = path.resolve()
    if root not in resolved.parents:
        raise outside
    try:
        mode = resolved.stat().st_mode
    except OSError as error:
        raise ModelFileError(
            f"the weights of tensor {name!r} are in {location!r}, which cannot be read: "
            f"{error.strerror}",
            hint=f"Copy {location!r} into {folder}, where the ONNX file expects it.",
        ) from error
    if not stat.S_ISREG(mode):
        raise ModelFileError(f"tensor {name!r} points to {location!r}, which is not a file")
    return resolved
