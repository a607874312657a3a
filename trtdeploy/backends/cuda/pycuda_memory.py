"""Device memory by PyCUDA, in the primary context, which TensorRT and other packages share.

Names and parameters as in PyCUDA 2026.1 (``src/wrapper/wrap_cudadrv.cpp``). PyCUDA captures no CUDA
graphs and cannot wrap the stream of another package.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from trtdeploy.backends.cuda.device_memory import LEGACY_STREAM, DeviceMemory, GpuDevice
from trtdeploy.backends.installed import INSTALL, find_installed
from trtdeploy.core.arrays import Array
from trtdeploy.core.errors import ExecutionError, NotPossibleError
from trtdeploy.core.optional import import_optional
from trtdeploy.core.units import format_bytes

_NON_BLOCKING = 1
"""``CU_STREAM_NON_BLOCKING`` of cuda.h; PyCUDA has no name for it."""


def open_pycuda_memory(index: int) -> DeviceMemory:
    """Return the memory of one GPU; see ``open_device_memory``."""
    driver = import_optional(
        "pycuda.driver", needed_for="running engines", install=INSTALL["pycuda"]
    )
    try:
        driver.init()
        count = driver.Device.count()
    except driver.Error as error:
        raise NotPossibleError(
            f"engines run on an NVIDIA GPU, and CUDA finds none here: {error}",
            hint="Run it on the device; 'trtdeploy doctor' says what this machine has.",
        ) from error
    if not 0 <= index < count:
        raise NotPossibleError(f"there is no GPU {index}: CUDA reports {count}, numbered from 0")
    return PycudaMemory(driver, index)


class PycudaMemory:
    """``DeviceMemory`` over the CUDA driver API.

    Args:
        driver: ``pycuda.driver``, initialised.
        index: An existing GPU.
    """

    can_capture = False

    def __init__(self, driver: Any, index: int) -> None:
        self._driver = driver
        self._allocations: dict[int, Any] = {}
        self._streams: dict[int, Any] = {}
        self.library = f"PyCUDA {find_installed('pycuda').version}"
        device = driver.Device(index)
        major, minor = device.compute_capability()
        self.device = GpuDevice(index, str(device.name()), f"{major}.{minor}")
        with self._translate("retain_primary_context"):
            self._context = device.retain_primary_context()

    @contextmanager
    def current(self) -> Iterator[None]:
        """Push the primary context on this thread's stack, and pop it."""
        self._context.push()
        try:
            yield
        finally:
            self._driver.Context.pop()

    def allocate(self, size_bytes: int) -> int:
        """Allocate device memory."""
        with self._translate("mem_alloc", size_bytes):
            allocation = self._driver.mem_alloc(size_bytes)
        self._allocations[int(allocation)] = allocation
        return int(allocation)

    def free(self, address: int) -> None:
        """Release device memory."""
        with self._translate("mem_free"):
            self._allocations.pop(address).free()

    def allocate_pinned(self, size_bytes: int) -> Array:
        """Allocate page-locked host memory."""
        with self._translate("pagelocked_empty", size_bytes):
            array: Array = self._driver.pagelocked_empty(size_bytes, np.uint8)
            return array

    def free_pinned(self, array: Array) -> None:
        """Release page-locked host memory, which the array's base owns."""
        base: Any = array.base
        with self._translate("HostAllocation.free"):
            base.free()

    def copy_to_device(self, address: int, source: Array, stream: int) -> None:
        """Queue a copy to the device."""
        with self._translate("memcpy_htod_async"):
            self._driver.memcpy_htod_async(address, _as_bytes(source), self._streams[stream])

    def copy_to_host(self, destination: Array, address: int, stream: int) -> None:
        """Queue a copy to the host."""
        with self._translate("memcpy_dtoh_async"):
            self._driver.memcpy_dtoh_async(_as_bytes(destination), address, self._streams[stream])

    def create_stream(self) -> int:
        """Create a non-blocking stream."""
        with self._translate("Stream"):
            stream = self._driver.Stream(_NON_BLOCKING)
        self._streams[int(stream.handle)] = stream
        return int(stream.handle)

    def destroy_stream(self, stream: int) -> None:
        """Release a stream; PyCUDA destroys it with its object."""
        del self._streams[stream]

    def synchronize(self, stream: int) -> None:
        """Wait for a stream."""
        with self._translate("Stream.synchronize"):
            self._streams[stream].synchronize()

    def wait_for(self, stream: int, other: int) -> None:
        """Let a stream wait for another one; for one that PyCUDA did not make, wait for all."""
        if other not in (LEGACY_STREAM, *self._streams):
            with self._translate("Context.synchronize"):
                self._driver.Context.synchronize()
            return
        with self._translate("Stream.wait_for_event"):
            event = self._driver.Event(self._driver.event_flags.DISABLE_TIMING)
            event.record(self._streams.get(other))  # None is the legacy default stream
            self._streams[stream].wait_for_event(event)

    def begin_capture(self, stream: int) -> None:
        """Refuse: PyCUDA captures nothing."""
        raise NotPossibleError(
            f"{self.library} captures no CUDA graphs (stream {stream})",
            hint=f"Install cuda-python: {INSTALL['cuda']}",
        )

    def end_capture(self, stream: int) -> int:
        """Refuse; see ``begin_capture``."""
        raise NotPossibleError(f"{self.library} captures no CUDA graphs (stream {stream})")

    def launch_graph(self, graph: int, stream: int) -> None:
        """Refuse; see ``begin_capture``."""
        raise NotPossibleError(f"{self.library} has no CUDA graph {graph} (stream {stream})")

    def destroy_graph(self, graph: int) -> None:
        """Refuse; see ``begin_capture``."""
        raise NotPossibleError(f"{self.library} has no CUDA graph {graph}")

    @contextmanager
    def _translate(self, function: str, wanted: int = 0) -> Iterator[None]:
        """Turn PyCUDA's errors into ours."""
        try:
            yield
        except self._driver.MemoryError as error:
            raise NotPossibleError(
                f"{self.device.name} has no {format_bytes(wanted)} left ({function}: {error})",
                hint="End what else uses the GPU, or build for smaller sizes (--shape).",
            ) from error
        except self._driver.Error as error:
            raise ExecutionError(f"{function} of {self.library} failed: {error}") from error


def _as_bytes(array: Array) -> Array:
    """Return the same memory as bytes: numpy lends no buffer of BF16 and FP8 arrays."""
    return array.reshape(-1).view(np.uint8)
