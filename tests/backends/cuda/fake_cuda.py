"""Stand-ins for ``cuda.bindings.runtime`` and ``pycuda.driver``: the calls, over real memory.

Names and parameters are those of cuda-python 13.5 (imported and called without a driver) and of
PyCUDA 2026.1 (read from its source). What they do to a GPU, they do not do.
"""

# ruff: noqa: N802, N815  (the names are NVIDIA's)

from __future__ import annotations

import ctypes
from collections.abc import Callable
from enum import IntEnum
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from tests.backends.fake_device_memory import allocate_aligned

NAME, CAPABILITY = "NVIDIA Fake 100", (8, 7)


class CudaError(IntEnum):
    cudaSuccess = 0
    cudaErrorMemoryAllocation = 2
    cudaErrorNoDevice = 100
    cudaErrorIllegalAddress = 700


class Handle:
    """An opaque handle, as cuda-python wraps them."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __int__(self) -> int:
        return self.number


class FakeCudaRuntime(ModuleType):
    """``cuda.bindings.runtime`` for two GPUs.

    Attributes:
        done: Name and arguments of every call; handles as numbers.
        failing: Function name to the status it answers.
        current: The device that is current.
    """

    cudaError_t = CudaError
    cudaStreamNonBlocking = 1
    cudaEventDisableTiming = 2
    cudaMemcpyKind = SimpleNamespace(cudaMemcpyHostToDevice="h2d", cudaMemcpyDeviceToHost="d2h")
    cudaStreamCaptureMode = SimpleNamespace(cudaStreamCaptureModeThreadLocal="thread")
    cudaStream_t = Handle

    def __init__(self, count: int = 2) -> None:
        super().__init__("cuda.bindings.runtime")
        self.count = count
        self.current = 0
        self.done: list[tuple[Any, ...]] = []
        self.failing: dict[str, CudaError] = {}
        self._memory: dict[int, Any] = {}
        self._next = 100

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if not name.startswith("cuda"):
            raise AttributeError(name)
        if f"_do_{name}" not in dir(type(self)):
            raise AttributeError(f"cuda.bindings.runtime has no {name}")
        do = getattr(self, f"_do_{name}")

        def call(*arguments: Any) -> tuple[Any, ...]:
            numbers = (a.number if isinstance(a, Handle) else a for a in arguments)
            self.done.append((name, *numbers))
            if name in self.failing:
                return (self.failing[name], None)
            value = do(*arguments)
            return (CudaError.cudaSuccess,) if value is None else (CudaError.cudaSuccess, value)

        return call

    def names(self) -> list[str]:
        """Return the names of the calls."""
        return [call[0] for call in self.done]

    def _new_handle(self) -> Handle:
        self._next += 1
        return Handle(self._next)

    def _do_cudaGetDeviceCount(self) -> int:
        return self.count

    def _do_cudaGetErrorString(self, status: Any) -> bytes:
        return b"what went wrong"

    def _do_cudaGetDeviceProperties(self, index: int) -> Any:
        major, minor = CAPABILITY
        return SimpleNamespace(name=NAME.encode() + b"\0\0", major=major, minor=minor)

    def _do_cudaGetDevice(self) -> int:
        return self.current

    def _do_cudaSetDevice(self, index: int) -> None:
        self.current = index

    def _do_cudaMalloc(self, size: int) -> int:
        array = allocate_aligned(size)
        self._memory[array.ctypes.data] = array
        return int(array.ctypes.data)

    _do_cudaMallocHost = _do_cudaMalloc

    def _do_cudaFree(self, address: int) -> None:
        del self._memory[address]

    _do_cudaFreeHost = _do_cudaFree

    def _do_cudaMemcpyAsync(self, to: int, source: int, size: int, _kind: Any, _s: Handle) -> None:
        ctypes.memmove(to, source, size)

    def _do_cudaStreamCreateWithFlags(self, flags: int) -> Handle:
        return self._new_handle()

    def _do_cudaEventCreateWithFlags(self, flags: int) -> Handle:
        return self._new_handle()

    def _do_cudaStreamEndCapture(self, stream: Handle) -> Handle:
        return self._new_handle()

    def _do_cudaGraphInstantiate(self, graph: Handle, flags: int) -> Handle:
        return self._new_handle()

    def _nothing(self, *_arguments: Any) -> None: ...

    _do_cudaStreamDestroy = _do_cudaStreamSynchronize = _nothing
    _do_cudaStreamWaitEvent = _do_cudaStreamBeginCapture = _nothing
    _do_cudaEventRecord = _do_cudaEventDestroy = _nothing
    _do_cudaGraphLaunch = _do_cudaGraphDestroy = _do_cudaGraphExecDestroy = _nothing


class FakePycudaDriver(ModuleType):
    """``pycuda.driver`` for one GPU.

    Attributes:
        done: What was called.
        stack: Depth of the context stack.
        failing: Function name to the exception it raises.
    """

    class Error(Exception): ...

    class MemoryError(Error): ...

    event_flags = SimpleNamespace(DISABLE_TIMING=2)

    def __init__(self) -> None:
        super().__init__("pycuda.driver")
        self.done: list[tuple[Any, ...]] = []
        self.stack = 0
        self.failing: dict[str, Exception] = {}
        self.Device = lambda index: FakePycudaDevice(self, index)
        self.Device.count = lambda: 1  # type: ignore[attr-defined]
        self.Context = SimpleNamespace(
            pop=lambda: self.note("pop", change=-1), synchronize=lambda: self.note("wait for all")
        )
        self.Stream = lambda flags=0: FakePycudaStream(self, flags)
        self.Event = lambda flags=0: FakePycudaEvent(self, flags)

    def note(self, *call: Any, change: int = 0) -> None:
        """Record a call, or raise what it is scripted to raise."""
        self.done.append(call)
        self.stack += change
        if call[0] in self.failing:
            raise self.failing[call[0]]
        if not change and call[0] != "init":
            assert self.stack == 1, f"{call[0]} without a current context"

    def init(self) -> None:
        self.note("init")

    def mem_alloc(self, size: int) -> FakePycudaAllocation:
        self.note("mem_alloc", size)
        return FakePycudaAllocation(self, allocate_aligned(size))

    def pagelocked_empty(self, shape: int, dtype: Any) -> Any:
        self.note("pagelocked_empty", shape)
        return np.ndarray(shape, dtype, buffer=FakePagelocked(self, shape))

    def memcpy_htod_async(self, dest: int, src: Any, stream: Any = None) -> None:
        self.note("memcpy_htod_async", dest, stream.handle)
        ctypes.memmove(dest, src.ctypes.data, memoryview(src).nbytes)

    def memcpy_dtoh_async(self, dest: Any, src: int, stream: Any = None) -> None:
        self.note("memcpy_dtoh_async", src, stream.handle)
        ctypes.memmove(dest.ctypes.data, src, memoryview(dest).nbytes)


class FakePycudaDevice:
    def __init__(self, driver: FakePycudaDriver, index: int) -> None:
        self._driver = driver

    def name(self) -> str:
        return NAME

    def compute_capability(self) -> tuple[int, int]:
        return CAPABILITY

    def retain_primary_context(self) -> Any:
        return SimpleNamespace(push=lambda: self._driver.note("push", change=1))


class FakePycudaAllocation:
    def __init__(self, driver: FakePycudaDriver, array: Any) -> None:
        self._driver, self._array = driver, array

    def __int__(self) -> int:
        return int(self._array.ctypes.data)

    def free(self) -> None:
        self._driver.note("free")


class FakePagelocked(bytearray):
    """Owner of page-locked memory: the base of the array over it."""

    def __init__(self, driver: FakePycudaDriver, size: int) -> None:
        super().__init__(size)
        self._driver = driver

    def free(self) -> None:
        self._driver.note("free pinned")


class FakePycudaStream:
    def __init__(self, driver: FakePycudaDriver, flags: int) -> None:
        driver.note("Stream", flags)
        self._driver, self.handle = driver, 7000 + len(driver.done)

    def synchronize(self) -> None:
        self._driver.note("synchronize", self.handle)

    def wait_for_event(self, event: FakePycudaEvent) -> None:
        self._driver.note("wait_for_event", self.handle, event.recorded)


class FakePycudaEvent:
    def __init__(self, driver: FakePycudaDriver, flags: int) -> None:
        self._driver, self.flags = driver, flags
        self.recorded: int | None = None

    def record(self, stream: FakePycudaStream | None = None) -> FakePycudaEvent:
        self.recorded = stream.handle if stream else None
        self._driver.note("record", self.recorded)
        return self
