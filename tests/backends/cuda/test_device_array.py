"""Arrays on the GPU are taken as they lie there, by DLPack or by the CUDA Array Interface."""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.backends.fake_device_memory import FakeDeviceMemory
from trtdeploy.backends.cuda.device_array import DeviceArray, read_device_array
from trtdeploy.backends.cuda.dlpack import DEVICE_CUDA, _Tensor, read_capsule
from trtdeploy.core.errors import FeedError

STREAM = 77


@pytest.mark.parametrize("dtype", ["f4", "f2", "f8", "i1", "i4", "i8", "u1", "u2", "?", "c8"])
def test_numpys_own_capsules_are_read(dtype: str) -> None:
    array = np.zeros((2, 3, 4), dtype)
    tensor = read_capsule(array.__dlpack__())
    assert (tensor.address, tensor.shape) == (array.ctypes.data, (2, 3, 4))
    assert (tensor.dtype, tensor.device_type, tensor.device_id) == (array.dtype, 1, 0)
    assert tensor.strides in (None, (12, 4, 1))


def test_a_view_keeps_its_strides() -> None:
    array = np.zeros((4, 6), np.float32)[1:, ::2]
    tensor = read_capsule(array.__dlpack__())
    assert (tensor.address, tensor.strides) == (array.ctypes.data, (6, 2))


def test_what_is_no_capsule() -> None:
    with pytest.raises(ValueError, match="PyCapsule"):
        read_capsule(3)


class DlpackArray:
    """A package's array on the GPU, with a capsule of its own making."""

    def __init__(self, address: int = 4096, device: tuple[int, int] = (DEVICE_CUDA, 0)) -> None:
        self._shape = (ctypes.c_int64 * 2)(2, 3)
        self.tensor = _Tensor(
            data=address, device_type=device[0], device_id=device[1], ndim=2, code=2, bits=32,
            lanes=1, shape=ctypes.cast(self._shape, ctypes.POINTER(ctypes.c_int64)),
        )  # fmt: skip
        self.device = device
        self.asked: list[int] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, *, stream: int) -> Any:
        self.asked.append(stream)
        make = ctypes.pythonapi.PyCapsule_New
        make.restype = ctypes.py_object
        make.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return make(ctypes.addressof(self.tensor), b"dltensor", None)


def read(value: Any) -> DeviceArray | None:
    memory = FakeDeviceMemory()
    with memory.current():
        return read_device_array("x", value, memory, STREAM)


def test_dlpack_hands_the_engines_stream_to_the_producer() -> None:
    array = DlpackArray()
    found = read(array)
    assert found is not None
    assert (found.address, found.shape, found.dtype) == (4096, (2, 3), np.dtype("f4"))
    assert array.asked == [STREAM]


def test_the_offset_of_a_capsule_counts() -> None:
    array = DlpackArray()
    array.tensor.byte_offset = 512
    found = read(array)
    assert found is not None
    assert found.address == 4608
    array.tensor.byte_offset = 4
    with pytest.raises(FeedError, match="begins at address 0x1004"):
        read(array)


@pytest.mark.parametrize(
    ("code", "bits", "expected"),
    [(4, 16, ml_dtypes.bfloat16), (10, 8, ml_dtypes.float8_e4m3fn), (6, 8, np.bool_)],
)
def test_types_that_only_dlpack_names(code: int, bits: int, expected: Any) -> None:
    array = DlpackArray()
    array.tensor.code, array.tensor.bits = code, bits
    found = read(array)
    assert found is not None
    assert found.dtype == np.dtype(expected)


@pytest.mark.parametrize(("code", "bits", "lanes"), [(17, 4, 1), (2, 32, 4), (2, 24, 1)])
def test_types_that_numpy_lacks(code: int, bits: int, lanes: int) -> None:
    array = DlpackArray()
    array.tensor.code, array.tensor.bits, array.tensor.lanes = code, bits, lanes
    with pytest.raises(FeedError, match="element type that numpy does not have"):
        read(array)


@pytest.mark.parametrize("device", [(1, 0), (DEVICE_CUDA, 1), (3, 0)])
def test_arrays_that_lie_elsewhere(device: tuple[int, int]) -> None:
    with pytest.raises(FeedError, match=r"lies on DLPack device .*GPU 0 \(2, 0\)") as info:
        read(DlpackArray(device=device))
    assert "numpy.asarray" in info.value.hint


def test_a_transposed_capsule() -> None:
    array = DlpackArray()
    strides = (ctypes.c_int64 * 2)(1, 2)
    array.tensor.strides = ctypes.cast(strides, ctypes.POINTER(ctypes.c_int64))
    with pytest.raises(FeedError, match="row-major order") as info:
        read(array)
    assert "contiguous" in info.value.hint
    strides[:] = [3, 1]
    assert read(array) is not None


class InterfaceArray:
    def __init__(self, **described: Any) -> None:
        self.__cuda_array_interface__ = {
            "shape": (2, 3), "typestr": "<f4", "data": (4096, True), "version": 3, **described,
        }  # fmt: skip


@pytest.mark.parametrize(
    ("described", "waits"),
    [
        ({"stream": 9}, [("wait_for", STREAM, 9)]),
        ({"stream": None}, []),
        ({}, []),
        ({"version": 2}, [("wait_for", STREAM, 1)]),
    ],
)
def test_the_interface_names_the_stream_to_wait_for(
    described: dict[str, Any], waits: list[Any]
) -> None:
    memory = FakeDeviceMemory()
    with memory.current():
        found = read_device_array("x", InterfaceArray(**described), memory, STREAM)
    assert found is not None
    assert memory.done == waits


def test_strides_that_only_look_odd_are_packed() -> None:
    assert read(InterfaceArray(strides=(12, 4))) is not None
    assert read(InterfaceArray(shape=(1, 3), strides=(999, 4))) is not None
    assert read(InterfaceArray(shape=(0, 3), strides=(1, 1), data=(0, True))) is not None


def test_other_things_are_no_device_arrays() -> None:
    assert read([1, 2]) is None
    assert read(None) is None
