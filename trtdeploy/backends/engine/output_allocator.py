"""Outputs whose shape depends on the data: TensorRT asks for their memory while it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trtdeploy.backends.cuda.device_memory import DeviceMemory
from trtdeploy.backends.engine.tensor_buffers import DeviceBuffer
from trtdeploy.core.errors import TrtdeployError


class OutputStore:
    """Memory and shapes of the outputs that one engine sizes itself.

    Attributes:
        shapes: Final shape of each output, as TensorRT reported it in the last run.
        error: Why memory could not be had; TensorRT's callbacks cannot raise.
    """

    def __init__(self, memory: DeviceMemory) -> None:
        self._memory = memory
        self._buffers: dict[str, DeviceBuffer] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.error: TrtdeployError | None = None

    def address_of(self, name: str) -> int:
        """Return where an output lies; 0 when it never was given memory."""
        buffer = self._buffers.get(name)
        return buffer.address if buffer else 0

    def provide(self, name: str, size_bytes: int) -> int:
        """Return memory for an output, 0 where there is none."""
        buffer = self._buffers.setdefault(name, DeviceBuffer(self._memory))
        try:
            return buffer.ensure(size_bytes)
        except TrtdeployError as error:
            self.error = error
            return 0

    def begin_run(self) -> None:
        """Forget the shapes of the last run."""
        self.shapes.clear()
        self.error = None

    def release(self) -> None:
        """Free all memory."""
        for buffer in self._buffers.values():
            buffer.release()


def make_output_allocator(trt: Any, store: OutputStore) -> Any:
    """Return a ``trt.IOutputAllocator`` over ``store``; the caller keeps it alive.

    TensorRT 8.6 calls ``reallocate_output``; newer ones call ``reallocate_output_async`` where it
    exists. Memory is never taken from under a run: buffers only grow, and a run ends with a
    synchronised stream.
    """
    provide: Callable[[str, int], int] = store.provide

    class Allocator(trt.IOutputAllocator):  # type: ignore[misc]
        def __init__(self) -> None:
            trt.IOutputAllocator.__init__(self)

        def reallocate_output(self, name: str, _memory: Any, size: int, _alignment: int) -> int:
            return provide(name, size)

        def reallocate_output_async(
            self, name: str, _memory: Any, size: int, _alignment: int, _stream: int
        ) -> int:
            return provide(name, size)

        def notify_shape(self, name: str, shape: Any) -> None:
            store.shapes[name] = tuple(int(size) for size in shape)

    return Allocator()
