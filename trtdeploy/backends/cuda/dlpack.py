"""Reading a DLPack capsule without taking it over: where the data lies and what it looks like.

Layout: dlpack.h of DLPack 0.x and 1.x, ``DLManagedTensor`` (the capsule named "dltensor", which
every producer gives when no newer version is asked for). The capsule keeps the data alive; its own
destructor releases it.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import ml_dtypes
import numpy as np

from trtdeploy.backends.numpy_types import NumpyType

DEVICE_CUDA, DEVICE_CUDA_MANAGED = 2, 13
"""``kDLCUDA`` and ``kDLCUDAManaged``."""

_NAME = b"dltensor"
_INT, _UINT, _FLOAT, _BFLOAT, _COMPLEX, _BOOL = 0, 1, 2, 4, 5, 6
_KINDS = {_INT: "i", _UINT: "u", _FLOAT: "f", _COMPLEX: "c"}
_NARROW: Final[dict[tuple[int, int], NumpyType]] = {
    (_BFLOAT, 16): np.dtype(ml_dtypes.bfloat16),
    (_BOOL, 8): np.dtype(np.bool_),
    (10, 8): np.dtype(ml_dtypes.float8_e4m3fn),
    (11, 8): np.dtype(ml_dtypes.float8_e4m3fnuz),
    (12, 8): np.dtype(ml_dtypes.float8_e5m2),
    (13, 8): np.dtype(ml_dtypes.float8_e5m2fnuz),
}


class _Tensor(ctypes.Structure):
    _fields_: ClassVar[Any] = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


@dataclass(frozen=True)
class DlpackTensor:
    """What a capsule describes.

    Attributes:
        address: Of the first element.
        device_type: DLPack's number.
        device_id: Which device of that type.
        dtype: None for a type that numpy and ml_dtypes do not have.
        strides: In elements; None when the data is packed in row-major order.
    """

    address: int
    device_type: int
    device_id: int
    dtype: NumpyType | None
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None


def read_capsule(capsule: object) -> DlpackTensor:
    """Return what a capsule from ``__dlpack__`` describes.

    Raises:
        ValueError: It is no DLPack capsule, or one that was used up.
    """
    api = ctypes.pythonapi
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    address = api.PyCapsule_GetPointer(capsule, _NAME)  # raises ValueError itself
    tensor = _Tensor.from_address(address)
    return DlpackTensor(
        address=(tensor.data or 0) + tensor.byte_offset,
        device_type=tensor.device_type,
        device_id=tensor.device_id,
        dtype=_find_type(tensor),
        shape=tuple(tensor.shape[: tensor.ndim]),
        strides=tuple(tensor.strides[: tensor.ndim]) if tensor.strides else None,
    )


def _find_type(tensor: _Tensor) -> NumpyType | None:
    if tensor.lanes != 1:
        return None
    if tensor.code in _KINDS:
        name = f"{_KINDS[tensor.code]}{tensor.bits // 8}"
        try:
            return np.dtype(name)
        except TypeError:
            return None
    return _NARROW.get((tensor.code, tensor.bits))
