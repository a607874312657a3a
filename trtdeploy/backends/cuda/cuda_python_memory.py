"""Device memory by cuda-python: ``cuda.bindings.runtime``, or ``cuda.cudart`` before 12.6.

Every function returns a tuple whose first item is a ``cudaError_t``. The names and parameters used
here are the same in 12.4, 12.9 and 13.5.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from trtdeploy.backends.cuda.device_memory import DeviceMemory, GpuDevice
from trtdeploy.backends.installed import INSTALL, find_installed
from trtdeploy.core.arrays import Array
from trtdeploy.core.errors import ExecutionError, MissingDependencyError, NotPossibleError
from trtdeploy.core.optional import import_optional
from trtdeploy.core.units import format_bytes

_MODULES = ("cuda.bindings.runtime", "cuda.cudart")


def open_cuda_memory(index: int) -> DeviceMemory:
    """Return the memory of one GPU; see ``open_device_memory``."""
    runtime = _import_runtime()
    try:
        status, count = runtime.cudaGetDeviceCount()
    except RuntimeError as error:  # older releases raise where there is no driver library
        raise _explain_no_gpu(str(error)) from error
    if status != runtime.cudaError_t.cudaSuccess or not count:
        raise _explain_no_gpu(_name_status(runtime, status) if count is None else "it reports 0")
    if not 0 <= index < count:
        raise NotPossibleError(f"there is no GPU {index}: CUDA reports {count}, numbered from 0")
    return CudaMemory(runtime, index)


def _import_runtime() -> Any:
    try:
        return import_optional(_MODULES[0], needed_for="running engines", install="")
    except MissingDependencyError:
        return import_optional(_MODULES[1], needed_for="running engines", install=INSTALL["cuda"])


def _explain_no_gpu(reason: str) -> NotPossibleError:
    return NotPossibleError(
        f"engines run on an NVIDIA GPU, and CUDA finds none here: {reason}",
        hint="Run it on the device; 'trtdeploy doctor' says what this machine has.",
    )


def _name_status(runtime: Any, status: Any) -> str:
    _, text = runtime.cudaGetErrorString(status)
    words = text.decode() if isinstance(text, bytes) else str(text)
    return f"{getattr(status, 'name', status)}: {words}"


class CudaMemory:
    """``DeviceMemory`` over the CUDA runtime API.

    Args:
        runtime: ``cuda.bindings.runtime`` or ``cuda.cudart``.
        index: An existing GPU.
    """

    can_capture = True

    def __init__(self, runtime: Any, index: int) -> None:
        self._runtime = runtime
        self._handles: dict[int, Any] = {}
        self._to_device = runtime.cudaMemcpyKind.cudaMemcpyHostToDevice
        self._to_host = runtime.cudaMemcpyKind.cudaMemcpyDeviceToHost
        self.library = f"cuda-python {find_installed('cuda').version}"
        properties = self._call("cudaGetDeviceProperties", index)
        name = properties.name
        self.device = GpuDevice(
            index=index,
            name=name.decode().rstrip("\0") if isinstance(name, bytes) else str(name),
            compute_capability=f"{properties.major}.{properties.minor}",
        )

    @contextmanager
    def current(self) -> Iterator[None]:
        """Set the thread's device, and set it back."""
        before = self._call("cudaGetDevice")
        self._call("cudaSetDevice", self.device.index)
        try:
            yield
        finally:
            self._call("cudaSetDevice", before)

    def allocate(self, size_bytes: int) -> int:
        """Allocate device memory."""
        return int(self._call("cudaMalloc", size_bytes, wanted=size_bytes))

    def free(self, address: int) -> None:
        """Release device memory."""
        self._call("cudaFree", address)

    def allocate_pinned(self, size_bytes: int) -> Array:
        """Allocate page-locked host memory."""
        address = int(self._call("cudaMallocHost", size_bytes, wanted=size_bytes))
        return np.ctypeslib.as_array((ctypes.c_uint8 * size_bytes).from_address(address))

    def free_pinned(self, array: Array) -> None:
        """Release page-locked host memory."""
        self._call("cudaFreeHost", array.ctypes.data)

    def copy_to_device(self, address: int, source: Array, stream: int) -> None:
        """Queue a copy to the device."""
        self._copy(address, source.ctypes.data, source.nbytes, self._to_device, stream)

    def copy_to_host(self, destination: Array, address: int, stream: int) -> None:
        """Queue a copy to the host."""
        self._copy(destination.ctypes.data, address, destination.nbytes, self._to_host, stream)

    def create_stream(self) -> int:
        """Create a non-blocking stream."""
        return self._keep(
            self._call("cudaStreamCreateWithFlags", self._runtime.cudaStreamNonBlocking)
        )

    def destroy_stream(self, stream: int) -> None:
        """Release a stream."""
        self._call("cudaStreamDestroy", self._handles.pop(stream))

    def synchronize(self, stream: int) -> None:
        """Wait for a stream."""
        self._call("cudaStreamSynchronize", self._find_stream(stream))

    def wait_for(self, stream: int, other: int) -> None:
        """Let a stream wait for another one."""
        event = self._call("cudaEventCreateWithFlags", int(self._runtime.cudaEventDisableTiming))
        self._call("cudaEventRecord", event, self._find_stream(other))
        self._call("cudaStreamWaitEvent", self._find_stream(stream), event, 0)
        self._call("cudaEventDestroy", event)  # CUDA releases it once it has happened

    def begin_capture(self, stream: int) -> None:
        """Start a capture that only this thread's calls can disturb."""
        mode = self._runtime.cudaStreamCaptureMode.cudaStreamCaptureModeThreadLocal
        self._call("cudaStreamBeginCapture", self._find_stream(stream), mode)

    def end_capture(self, stream: int) -> int:
        """End a capture."""
        graph = self._call("cudaStreamEndCapture", self._find_stream(stream))
        try:
            return self._keep(self._call("cudaGraphInstantiate", graph, 0))
        finally:
            self._call("cudaGraphDestroy", graph)

    def launch_graph(self, graph: int, stream: int) -> None:
        """Queue a graph."""
        self._call("cudaGraphLaunch", self._handles[graph], self._find_stream(stream))

    def destroy_graph(self, graph: int) -> None:
        """Release a graph."""
        self._call("cudaGraphExecDestroy", self._handles.pop(graph))

    def _copy(self, to: int, source: int, size_bytes: int, kind: Any, stream: int) -> None:
        handle = self._find_stream(stream)
        self._call("cudaMemcpyAsync", to, source, size_bytes, kind, handle)

    def _keep(self, handle: Any) -> int:
        """Keep the package's own object: what it wraps is released with it in some releases."""
        self._handles[int(handle)] = handle
        return int(handle)

    def _find_stream(self, stream: int) -> Any:
        handle = self._handles.get(stream)
        return self._runtime.cudaStream_t(stream) if handle is None else handle

    def _call(self, function: str, *arguments: Any, wanted: int = 0) -> Any:
        """Call a function of the runtime and return its value, if it has one."""
        status, *values = getattr(self._runtime, function)(*arguments)
        errors = self._runtime.cudaError_t
        if status == errors.cudaSuccess:
            return values[0] if values else None
        if status == errors.cudaErrorMemoryAllocation and wanted:
            raise NotPossibleError(
                f"{self.device.name} has no {format_bytes(wanted)} left ({function})",
                hint="End what else uses the GPU, or build for smaller sizes (--shape).",
            )
        raise ExecutionError(f"{function} failed with {_name_status(self._runtime, status)}")
