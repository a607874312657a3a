"""One execution context: sizes, addresses and copies of a run, set only where they change."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from trtdeploy.backends.cuda.device_array import DeviceArray
from trtdeploy.backends.cuda.device_memory import DeviceMemory
from trtdeploy.backends.engine.engine_tensors import EngineTensor
from trtdeploy.backends.engine.output_allocator import OutputStore, make_output_allocator
from trtdeploy.backends.engine.runtime_log import RuntimeLog
from trtdeploy.backends.engine.tensor_buffers import DeviceBuffer, PinnedBuffer
from trtdeploy.core.arrays import Array
from trtdeploy.core.errors import ExecutionError
from trtdeploy.core.ranges import OptimizationProfile

_UNKNOWN = -1


class EngineExecution:
    """Runs an execution context on a stream of its own.

    Not thread-safe; every method is called inside ``with memory.current():``.

    Args:
        trt: The TensorRT module.
        context: ``trt.IExecutionContext``.
        memory: The GPU.
        tensors: Inputs and outputs of the engine.
        log: Where TensorRT's words go.
    """

    def __init__(
        self,
        trt: Any,
        context: Any,
        memory: DeviceMemory,
        tensors: Sequence[EngineTensor],
        log: RuntimeLog,
    ) -> None:
        self._context = context
        self._memory = memory
        self._log = log
        self._inputs = [tensor for tensor in tensors if tensor.is_input]
        self._outputs = [tensor for tensor in tensors if not tensor.is_input]
        self._on_device = {tensor.name: DeviceBuffer(memory) for tensor in tensors}
        self._on_host = {tensor.name: PinnedBuffer(memory) for tensor in tensors}
        self._store = OutputStore(memory)
        self._allocator = make_output_allocator(trt, self._store)
        self._active = _UNKNOWN
        self._sizes: dict[str, tuple[int, ...]] = {}
        self._addresses: dict[str, int] = {}
        self._output_sizes: dict[str, tuple[int, ...]] = {}
        self.stream = memory.create_stream()

    @property
    def key(self) -> tuple[object, ...]:
        """Everything that a captured run depends on."""
        values = tuple(self._view_host(t).tobytes() for t in self._inputs if t.on_host)
        return (
            self._active, *self._sizes.values(), *self._addresses.values(), *values,
        )  # fmt: skip

    def reserve(self, index: int, profile: OptimizationProfile) -> None:
        """Allocate what the largest sizes of an optimization profile take."""
        self._select(index)
        for tensor in self._inputs:
            shape = profile.shapes[tensor.name].max
            self._set_size(tensor, shape)
            view = self._on_host[tensor.name].view(shape, tensor.dtype)
            if not tensor.on_host:
                self._on_device[tensor.name].ensure(view.nbytes)
                continue
            if tensor.name not in profile.values:
                return  # without its values the sizes of the outputs are not known
            view[...] = np.asarray(profile.values[tensor.name].max, tensor.dtype).reshape(shape)
            self._set_address(tensor, view.ctypes.data)
        self._size_outputs()

    def prepare(self, index: int, arrays: Mapping[str, Array | DeviceArray]) -> None:
        """Choose the optimization profile, and put every input where TensorRT reads it."""
        self._store.begin_run()
        changed = self._select(index)
        for tensor in self._inputs:
            array = arrays[tensor.name]
            changed |= self._set_size(tensor, array.shape)
            changed |= self._place(tensor, array)
        if changed:
            self._size_outputs()

    def enqueue(self) -> None:
        """Queue the engine's own work."""
        done = self._context.execute_async_v3(self.stream)
        if self._store.error is not None:
            raise self._store.error
        if not done:
            raise ExecutionError(f"TensorRT could not run the engine: {self._log.take_errors()}")

    def collect(self) -> dict[str, Array]:
        """Copy the outputs to the host, wait for everything queued, and return them."""
        views = {tensor.name: self._fetch(tensor) for tensor in self._outputs}
        self._memory.synchronize(self.stream)
        return {name: view.copy() for name, view in views.items()}

    def sizes_itself(self, name: str) -> bool:
        """True for an output whose size depends on the data."""
        return _UNKNOWN in self._output_sizes.get(name, ())

    def recover(self) -> None:
        """After a failure: let queued copies end, and take nothing for set any more."""
        self._active = _UNKNOWN
        self._sizes.clear()
        self._addresses.clear()
        with suppress(ExecutionError):  # the failure itself is already on its way to the caller
            self._memory.synchronize(self.stream)

    def release(self) -> None:
        """Free memory, stream and context."""
        self._context = None
        self._store.release()
        for name in self._on_device:
            self._on_device[name].release()
            self._on_host[name].release()
        self._memory.destroy_stream(self.stream)

    def _select(self, index: int) -> bool:
        if index == self._active:
            return False
        place = f"TensorRT refuses optimization profile {index}"
        self._ask(place, self._context.set_optimization_profile_async, index, self.stream)
        self._active = index
        self._sizes.clear()  # TensorRT forgets them, too
        self._addresses.clear()
        return True

    def _set_size(self, tensor: EngineTensor, shape: tuple[int, ...]) -> bool:
        if self._sizes.get(tensor.name) == shape:
            return False
        self._sizes[tensor.name] = shape
        if _UNKNOWN in tensor.shape:
            place = f"TensorRT refuses shape {shape} for {tensor.name!r}"
            self._ask(place, self._context.set_input_shape, tensor.name, shape)
        return True

    def _place(self, tensor: EngineTensor, array: Array | DeviceArray) -> bool:
        """Hand an input over; True when sizes of outputs may have changed by it."""
        if isinstance(array, DeviceArray):
            # An array without elements may have no address, and TensorRT wants one.
            address = array.address or self._on_device[tensor.name].ensure(1)
            self._set_address(tensor, address)
            return False
        view = self._on_host[tensor.name].view(array.shape, tensor.dtype)
        if tensor.on_host:
            changed = not np.array_equal(view, array)
            view[...] = array
            return self._set_address(tensor, view.ctypes.data) or changed
        view[...] = array
        address = self._on_device[tensor.name].ensure(view.nbytes)
        if view.nbytes:
            self._memory.copy_to_device(address, view, self.stream)
        self._set_address(tensor, address)
        return False

    def _set_address(self, tensor: EngineTensor, address: int) -> bool:
        if self._addresses.get(tensor.name) == address:
            return False
        place = f"TensorRT refuses address {address:#x} for {tensor.name!r}"
        self._ask(place, self._context.set_tensor_address, tensor.name, address)
        self._addresses[tensor.name] = address
        return True

    def _size_outputs(self) -> None:
        """Learn the outputs' sizes, and give each output memory."""
        missing = self._call("TensorRT cannot work out sizes", self._context.infer_shapes)
        if missing:
            names = ", ".join(map(repr, missing))
            raise ExecutionError(
                f"TensorRT cannot work out the sizes of {names}: {self._log.take_errors()}"
            )
        for tensor in self._outputs:
            shape = tuple(int(size) for size in self._context.get_tensor_shape(tensor.name))
            first = tensor.name not in self._output_sizes
            self._output_sizes[tensor.name] = shape
            if _UNKNOWN in shape:
                if first:
                    place = f"TensorRT takes no output allocator for {tensor.name!r}"
                    self._ask(
                        place, self._context.set_output_allocator, tensor.name, self._allocator
                    )
            elif tensor.on_host:
                self._set_address(tensor, self._view_host(tensor).ctypes.data)
            else:
                size_bytes = math.prod(shape) * tensor.dtype.itemsize
                self._on_host[tensor.name].ensure(size_bytes)
                self._set_address(tensor, self._on_device[tensor.name].ensure(size_bytes))

    def _ask(self, place: str, method: Callable[..., Any], *arguments: Any) -> None:
        """Call a method that answers False, or raises, when it refuses."""
        if not self._call(place, method, *arguments):
            raise ExecutionError(f"{place}: {self._log.take_errors()}")

    def _call(self, place: str, method: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return method(*arguments)
        except RuntimeError as error:
            raise ExecutionError(f"{place}: {error}; {self._log.take_errors()}") from error

    def _view_host(self, tensor: EngineTensor) -> Array:
        sizes = self._sizes if tensor.is_input else self._output_sizes
        return self._on_host[tensor.name].view(sizes[tensor.name], tensor.dtype)

    def _fetch(self, tensor: EngineTensor) -> Array:
        """Queue the copy of an output, and return where it arrives."""
        shape, address = self._output_sizes[tensor.name], self._on_device[tensor.name].address
        if _UNKNOWN in shape:
            if tensor.name not in self._store.shapes:
                raise ExecutionError(f"TensorRT did not report the shape of {tensor.name!r}")
            shape, address = self._store.shapes[tensor.name], self._store.address_of(tensor.name)
        view = self._on_host[tensor.name].view(shape, tensor.dtype)
        if view.nbytes and not tensor.on_host:
            self._memory.copy_to_host(view, address, self.stream)
        return view
