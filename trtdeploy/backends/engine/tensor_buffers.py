"""Buffers of one engine tensor: they only grow, so that runs reuse them."""

from __future__ import annotations

from trtdeploy.backends.cuda.device_memory import DeviceMemory
from trtdeploy.backends.numpy_types import NumpyType
from trtdeploy.core.arrays import Array

_GRANULE_BYTES = 256


def _round_up(size_bytes: int) -> int:
    """Return at least one granule: TensorRT wants an address for empty tensors, too."""
    return max(1, -(-size_bytes // _GRANULE_BYTES)) * _GRANULE_BYTES


class DeviceBuffer:
    """Device memory of one tensor.

    Attributes:
        address: 0 before the first ``ensure``.
        size_bytes: What it holds.
    """

    def __init__(self, memory: DeviceMemory) -> None:
        self._memory = memory
        self.address = 0
        self.size_bytes = 0

    def ensure(self, size_bytes: int) -> int:
        """Return the address of at least ``size_bytes``; larger content is lost."""
        if size_bytes > self.size_bytes or not self.address:
            self.release()
            wanted = _round_up(size_bytes)
            self.address = self._memory.allocate(wanted)
            self.size_bytes = wanted
        return self.address

    def release(self) -> None:
        """Free the memory; ``ensure`` allocates anew."""
        if self.address:
            address, self.address, self.size_bytes = self.address, 0, 0
            self._memory.free(address)


class PinnedBuffer:
    """Page-locked host memory of one tensor, which the GPU copies from and to on its own."""

    def __init__(self, memory: DeviceMemory) -> None:
        self._memory = memory
        self._bytes: Array | None = None
        self._view: Array | None = None

    def ensure(self, size_bytes: int) -> Array:
        """Return the memory as bytes, at least ``size_bytes``; earlier content is lost."""
        if self._bytes is None or size_bytes > self._bytes.nbytes:
            self.release()
            self._bytes = self._memory.allocate_pinned(_round_up(size_bytes))
        return self._bytes

    def view(self, shape: tuple[int, ...], dtype: NumpyType) -> Array:
        """Return the beginning of the memory as an array of this shape."""
        view = self._view
        if view is None or view.shape != shape or view.dtype != dtype:
            count = dtype.itemsize
            for size in shape:
                count *= size
            view = self._view = self.ensure(count)[:count].view(dtype).reshape(shape)
        return view

    def release(self) -> None:
        """Free the memory; views of it must not be touched again."""
        if self._bytes is not None:
            array, self._bytes, self._view = self._bytes, None, None
            self._memory.free_pinned(array)
