"""Arrays that lie on the GPU already, of whatever package, taken without a copy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from trtdeploy.backends.cuda.device_memory import LEGACY_STREAM, DeviceMemory
from trtdeploy.backends.cuda.dlpack import DEVICE_CUDA, DEVICE_CUDA_MANAGED, read_capsule
from trtdeploy.backends.numpy_types import NumpyType
from trtdeploy.core.errors import FeedError

ALIGNMENT_BYTES = 256
"""Of every tensor address: NvInferRuntime.h, IExecutionContext::setTensorAddress."""


@dataclass(frozen=True)
class DeviceArray:
    """An array in device memory, packed in row-major order.

    Attributes:
        address: Of the first element.
        owner: Keeps the memory alive.
    """

    address: int
    dtype: NumpyType
    shape: tuple[int, ...]
    owner: object


def read_device_array(
    name: str, value: Any, memory: DeviceMemory, stream: int
) -> DeviceArray | None:
    """Return the array behind ``__dlpack__`` or ``__cuda_array_interface__``, None for neither.

    From then on ``stream`` waits for whatever the producer still has queued on the array.

    Args:
        name: The input, for errors.
        value: Anything.
        memory: The GPU the engine runs on.
        stream: The stream the engine runs on.

    Raises:
        FeedError: It lies elsewhere, is not packed in row-major order, or is not aligned.
    """
    if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        return _read_dlpack(name, value, memory, stream)
    described = getattr(value, "__cuda_array_interface__", None)
    if described is None:
        return None
    return _read_interface(name, value, described, memory, stream)


def _read_dlpack(name: str, value: Any, memory: DeviceMemory, stream: int) -> DeviceArray:
    kind, index = (int(part) for part in value.__dlpack_device__())
    if kind not in (DEVICE_CUDA, DEVICE_CUDA_MANAGED) or index != memory.device.index:
        raise FeedError(
            f"input {name!r} lies on DLPack device ({kind}, {index}); the engine takes arrays on "
            f"GPU {memory.device.index} ({DEVICE_CUDA}, {memory.device.index}) or numpy arrays",
            hint="For an array in host memory give numpy.asarray(array).",
        )
    capsule = value.__dlpack__(stream=stream)
    tensor = read_capsule(capsule)
    if tensor.dtype is None:
        raise FeedError(f"input {name!r} has an element type that numpy does not have")
    strides = None
    if tensor.strides is not None:
        strides = tuple(stride * tensor.dtype.itemsize for stride in tensor.strides)
    _require_packed(name, tensor.shape, strides, tensor.dtype)
    _require_aligned(name, tensor.address)
    return DeviceArray(tensor.address, tensor.dtype, tensor.shape, capsule)


def _read_interface(
    name: str, value: Any, described: dict[str, Any], memory: DeviceMemory, stream: int
) -> DeviceArray:
    """Read a CUDA Array Interface (numba's specification, versions 2 and 3)."""
    shape = tuple(int(size) for size in described["shape"])
    dtype: NumpyType = np.dtype(described["typestr"])
    _require_packed(name, shape, described.get("strides"), dtype)
    address = int(described["data"][0] or 0)
    _require_aligned(name, address)
    # Version 2 states no stream: its producers use the default one unless told otherwise.
    producer = described.get("stream") if described["version"] > 2 else LEGACY_STREAM  # noqa: PLR2004 the specification's own number
    if producer is not None:
        memory.wait_for(stream, int(producer))
    return DeviceArray(address, dtype, shape, value)


def _require_packed(
    name: str, shape: tuple[int, ...], strides: tuple[int, ...] | None, dtype: NumpyType
) -> None:
    if strides is None or 0 in shape:
        return
    packed = dtype.itemsize
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1 and stride != packed:
            raise FeedError(
                f"input {name!r} has strides {tuple(strides)} for shape {shape}; an array on the "
                "GPU is taken without a copy and must be packed in row-major order",
                hint="Make it contiguous first, e.g. tensor.contiguous().",
            )
        packed *= size


def _require_aligned(name: str, address: int) -> None:
    if address % ALIGNMENT_BYTES:
        raise FeedError(
            f"input {name!r} begins at address {address:#x}; TensorRT takes addresses that are "
            f"multiples of {ALIGNMENT_BYTES}",
            hint="It is a part of a larger array: copy it first, e.g. tensor.clone().",
        )
