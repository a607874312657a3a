"""A GPU whose memory is this process's own: copies really copy, and misuse is noticed."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from trtdeploy.backends.cuda.device_memory import GpuDevice
from trtdeploy.core.errors import NotPossibleError

Array = np.ndarray[Any, Any]
ALIGNMENT = 256


def allocate_aligned(size_bytes: int) -> Array:
    """Return ``uint8[size_bytes]`` that begins at a multiple of 256."""
    store = np.zeros(size_bytes + ALIGNMENT, np.uint8)
    start = -store.ctypes.data % ALIGNMENT
    return store[start : start + size_bytes]


def view_memory(address: int, shape: tuple[int, ...], dtype: Any) -> Array:
    """Return the array that lies at an address of this process."""
    count = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    if not count:
        return np.zeros(shape, dtype)
    raw = np.ctypeslib.as_array((ctypes.c_uint8 * count).from_address(address))
    return raw.view(dtype).reshape(shape)


class FakeDeviceMemory:
    """``DeviceMemory`` without a GPU.

    Attributes:
        done: Every call in order: name, then its numbers.
        live: Device allocations by address; a leak stays here.
        pinned: Page-locked allocations by address.
        streams: Streams that exist.
        graphs: Captured graphs that exist.
        limit_bytes: Larger allocations fail; None has no limit.
    """

    can_capture = True
    library = "fake CUDA"

    def __init__(self, compute_capability: str = "8.9", name: str = "Fake GPU") -> None:
        self.device = GpuDevice(0, name, compute_capability)
        self.done: list[tuple[Any, ...]] = []
        self.live: dict[int, Array] = {}
        self.pinned: dict[int, Array] = {}
        self.streams: set[int] = set()
        self.graphs: set[int] = set()
        self.limit_bytes: int | None = None
        self.is_capturing = False
        self._depth = 0
        self._next = 0x1000

    def names(self) -> list[str]:
        """Return the names of the calls."""
        return [call[0] for call in self.done]

    @contextmanager
    def current(self) -> Iterator[None]:
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    def allocate(self, size_bytes: int) -> int:
        self._note("allocate", size_bytes)
        if self.limit_bytes is not None and size_bytes > self.limit_bytes:
            raise NotPossibleError(f"{self.device.name} has no {size_bytes} bytes left")
        array = allocate_aligned(size_bytes)
        self.live[array.ctypes.data] = array
        return int(array.ctypes.data)

    def free(self, address: int) -> None:
        self._note("free", address)
        del self.live[address]

    def allocate_pinned(self, size_bytes: int) -> Array:
        self._note("allocate_pinned", size_bytes)
        array = allocate_aligned(size_bytes)
        self.pinned[array.ctypes.data] = array
        return array

    def free_pinned(self, array: Array) -> None:
        self._note("free_pinned", array.ctypes.data)
        del self.pinned[array.ctypes.data]

    def copy_to_device(self, address: int, source: Array, stream: int) -> None:
        self._note("copy_to_device", address, source.nbytes, stream)
        assert source.flags.c_contiguous
        assert self.live[address].nbytes >= source.nbytes
        ctypes.memmove(address, source.ctypes.data, source.nbytes)

    def copy_to_host(self, destination: Array, address: int, stream: int) -> None:
        self._note("copy_to_host", address, destination.nbytes, stream)
        assert destination.flags.c_contiguous
        assert self.live[address].nbytes >= destination.nbytes
        ctypes.memmove(destination.ctypes.data, address, destination.nbytes)

    def create_stream(self) -> int:
        self._note("create_stream")
        self.streams.add(self._take_handle())
        return self._next

    def destroy_stream(self, stream: int) -> None:
        self._note("destroy_stream", stream)
        self.streams.remove(stream)

    def synchronize(self, stream: int) -> None:
        self._note("synchronize", stream)
        assert stream in self.streams

    def wait_for(self, stream: int, other: int) -> None:
        self._note("wait_for", stream, other)

    def begin_capture(self, stream: int) -> None:
        self._note("begin_capture", stream)
        self.is_capturing = True

    def end_capture(self, stream: int) -> int:
        self._note("end_capture", stream)
        self.is_capturing = False
        self.graphs.add(self._take_handle())
        return self._next

    def launch_graph(self, graph: int, stream: int) -> None:
        self._note("launch_graph", graph, stream)
        assert graph in self.graphs

    def destroy_graph(self, graph: int) -> None:
        self._note("destroy_graph", graph)
        self.graphs.remove(graph)

    def _take_handle(self) -> int:
        self._next += 1
        return self._next

    def _note(self, *call: Any) -> None:
        assert self._depth, f"{call[0]} outside of current()"
        self.done.append(call)
