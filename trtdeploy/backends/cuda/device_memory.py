"""Memory, streams, events and graphs of a GPU, whichever CUDA package is installed.

Addresses and handles are plain integers, as TensorRT takes them. Two implementations exist:
``device_memory_cuda`` over cuda-python and ``device_memory_pycuda`` over PyCUDA.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from trtdeploy.core.arrays import Array

LEGACY_STREAM = 1
"""``cudaStreamLegacy``: the default stream that synchronises with all blocking streams."""


@dataclass(frozen=True)
class GpuDevice:
    """The GPU that memory lies on.

    Attributes:
        index: Its number in CUDA's order.
        name: As the driver calls it.
        compute_capability: E.g. ``8.9``.
    """

    index: int
    name: str
    compute_capability: str


class DeviceMemory(Protocol):
    """What sessions need of CUDA.

    Every method but ``current`` is called inside ``with memory.current():``, in whatever thread.

    Attributes:
        library: The package behind it, for people.
        can_capture: CUDA graphs can be captured.
    """

    library: str
    device: GpuDevice
    can_capture: bool

    def current(self) -> AbstractContextManager[None]:
        """Make the device current in this thread for the length of the block."""
        ...

    def allocate(self, size_bytes: int) -> int:
        """Return the address of new device memory, aligned to 256 bytes.

        Raises:
            NotPossibleError: The GPU has not that much left.
        """
        ...

    def free(self, address: int) -> None:
        """Release device memory."""
        ...

    def allocate_pinned(self, size_bytes: int) -> Array:
        """Return page-locked host memory as ``uint8[size_bytes]``, aligned to a page."""
        ...

    def free_pinned(self, array: Array) -> None:
        """Release page-locked memory; the array must not be touched again."""
        ...

    def copy_to_device(self, address: int, source: Array, stream: int) -> None:
        """Queue a copy of a contiguous host array to device memory."""
        ...

    def copy_to_host(self, destination: Array, address: int, stream: int) -> None:
        """Queue a copy of device memory into a contiguous host array."""
        ...

    def create_stream(self) -> int:
        """Return a new stream that does not wait for the default stream."""
        ...

    def destroy_stream(self, stream: int) -> None:
        """Release a stream."""
        ...

    def synchronize(self, stream: int) -> None:
        """Wait until everything queued on the stream is done."""
        ...

    def wait_for(self, stream: int, other: int) -> None:
        """Let ``stream`` wait for what is queued on ``other`` (a stream of anybody) by now."""
        ...

    def begin_capture(self, stream: int) -> None:
        """Start to capture what is queued on the stream instead of running it."""
        ...

    def end_capture(self, stream: int) -> int:
        """End the capture and return the executable graph."""
        ...

    def launch_graph(self, graph: int, stream: int) -> None:
        """Queue a graph."""
        ...

    def destroy_graph(self, graph: int) -> None:
        """Release a graph."""
        ...
