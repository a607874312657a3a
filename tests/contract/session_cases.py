"""What the tests of sessions share: an engine that computes, behind the stand-in's own API."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from tests.backends.fake_device_memory import FakeDeviceMemory, view_memory
from trtdeploy.backends.engine.engine_loading import EngineRequest
from trtdeploy.backends.engine.tensorrt_session import TensorrtSession, open_engine

from .standin import LayerContent, NetworkContent, StandinModule, TensorContent

Array = np.ndarray[Any, Any]
Shapes = Mapping[str, tuple[int, ...]]
Points = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]

PLAN: Final = b"ftrt plan"
_TYPES: Final = {
    "FLOAT": np.float32, "HALF": np.float16, "INT8": np.int8, "UINT8": np.uint8,
    "INT32": np.int32, "INT64": np.int64, "BOOL": np.bool_,
}  # fmt: skip


def double(inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Compute ``y = 2 x``."""
    return {"y": inputs["x"] * 2}


def keep_shape(shapes: Shapes, _values: Mapping[str, Array]) -> dict[str, tuple[int, ...]]:
    """Return the shape of ``x`` for ``y``."""
    return {"y": shapes["x"]}


@dataclass
class ScriptedEngine:
    """An engine behind the stand-in: sizes and results are computed here.

    Attributes:
        inputs: Its inputs; -1 is a size that varies.
        outputs: Its outputs.
        profiles: Per optimization profile, (min, opt, max) of every input that varies.
        values: Per optimization profile, the same for the contents of shape tensors.
        infer: Shapes of the outputs; -1 where they depend on the data.
        compute: Outputs from inputs.
        overrides: Answers of the stand-in that win over the engine's own.
    """

    inputs: tuple[TensorContent, ...] = (TensorContent("x", shape=(-1, 3)),)
    outputs: tuple[TensorContent, ...] = (TensorContent("y", shape=(-1, 3)),)
    profiles: Sequence[Mapping[str, Points]] = ({"x": ((1, 3), (2, 3), (4, 3))},)
    values: Sequence[Mapping[str, Points]] = ({},)
    infer: Callable[[Shapes, Mapping[str, Array]], Mapping[str, tuple[int, ...]]] = keep_shape
    compute: Callable[[Mapping[str, Array]], Mapping[str, Array]] = double
    overrides: Mapping[str, object] = field(default_factory=dict)
    active: int | None = None
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    addresses: dict[str, int] = field(default_factory=dict)
    allocators: dict[str, Any] = field(default_factory=dict)
    runs: int = 0

    def install(self, trt: StandinModule) -> None:
        """Script the stand-in to behave as this engine."""
        layer = LayerContent("layer", "IDENTITY", (self.inputs[0].name,), self.outputs)
        names = tuple(output.name for output in self.outputs)
        trt.set_network(NetworkContent(self.inputs, (layer,), names))
        script = trt.script
        script["ICudaEngine.num_optimization_profiles"] = len(self.profiles)
        script["ICudaEngine.get_tensor_profile_shape"] = self._get_profile_shape
        script["ICudaEngine.get_tensor_location"] = lambda _engine, name: trt.context.member(
            "TensorLocation", "HOST" if self._find(name).is_shape_tensor else "DEVICE"
        )
        if "get_tensor_profile_values" in trt.context.api["classes"]["ICudaEngine"]["attributes"]:
            script["ICudaEngine.get_tensor_profile_values"] = self._get_profile_values
        script["IExecutionContext.set_optimization_profile_async"] = self._select
        script["IExecutionContext.set_input_shape"] = self._set_shape
        script["IExecutionContext.set_tensor_address"] = self._set_address
        script["IExecutionContext.set_output_allocator"] = self._set_allocator
        script["IExecutionContext.infer_shapes"] = self._infer_shapes
        script["IExecutionContext.get_tensor_shape"] = self._get_shape
        script["IExecutionContext.execute_async_v3"] = self._execute
        if hasattr(trt, "EngineValidity"):
            valid = trt.context.member("EngineValidity", "VALID")
            script["Runtime.get_engine_validity"] = lambda _runtime, _plan: (valid, 0)
        for member, answer in self.overrides.items():
            script[member] = answer

    def read_inputs(self) -> dict[str, Array]:
        """Return the inputs as they lie at the addresses that were set."""
        return {
            tensor.name: view_memory(
                self.addresses[tensor.name], self._size(tensor), _TYPES[tensor.dtype]
            ).copy()
            for tensor in self.inputs
        }

    def _find(self, name: str) -> TensorContent:
        return next(t for t in (*self.inputs, *self.outputs) if t.name == name)

    def _size(self, tensor: TensorContent) -> tuple[int, ...]:
        return self.shapes[tensor.name] if -1 in tensor.shape else tensor.shape

    def _get_profile_shape(self, _engine: Any, name: str, profile_index: int) -> list[Any]:
        return list(self.profiles[profile_index][name])

    def _get_profile_values(self, _engine: Any, index: int, name: str) -> list[Any]:
        assert isinstance(index, int)
        return [list(point) for point in self.values[index].get(name, ())]

    def _select(self, _context: Any, profile_index: int, _stream: int) -> bool:
        self.active = profile_index
        self.shapes.clear()
        self.addresses.clear()
        return True

    def _set_shape(self, _context: Any, name: str, shape: Any) -> bool:
        assert self.active is not None
        low, _, high = self.profiles[self.active][name]
        fits = all(a <= b <= c for a, b, c in zip(low, shape, high, strict=True))
        self.shapes[name] = tuple(shape)
        return fits

    def _set_address(self, _context: Any, name: str, memory: int) -> bool:
        assert memory
        assert memory % 256 == 0
        self.addresses[name] = memory
        return True

    def _set_allocator(self, _context: Any, name: str, allocator: Any) -> bool:
        self.allocators[name] = allocator
        return True

    def _infer_shapes(self, _context: Any) -> list[str]:
        missing = [t.name for t in self.inputs if -1 in t.shape and t.name not in self.shapes]
        host = [t.name for t in self.inputs if t.is_shape_tensor and t.name not in self.addresses]
        return [*missing, *host]

    def _get_shape(self, _context: Any, name: str) -> tuple[int, ...]:
        sizes = {tensor.name: self._size(tensor) for tensor in self.inputs}
        host = {
            t.name: view_memory(self.addresses[t.name], self._size(t), _TYPES[t.dtype])
            for t in self.inputs
            if t.is_shape_tensor
        }
        return tuple(self.infer(sizes, host)[name])

    def _execute(self, context: Any, _stream: int) -> bool:
        self.runs += 1
        for name, result in self.compute(self.read_inputs()).items():
            address = self.addresses.get(name, 0)
            if name in self.allocators:
                address = self._ask_allocator(name, result)
            if not address:
                return False
            view_memory(address, result.shape, result.dtype)[...] = result
        return True

    def _ask_allocator(self, name: str, result: Array) -> int:
        """Call the allocator as TensorRT does: 8.6 knows no asynchronous form."""
        allocator = self.allocators[name]
        is_old = "reallocate_output" in dir(type(allocator).__mro__[1])
        size = max(result.nbytes, 1)
        if is_old:
            address = allocator.reallocate_output(name, 0, size, 256)
        else:
            address = allocator.reallocate_output_async(name, 0, size, 256, 7)
        allocator.notify_shape(name, result.shape)
        return int(address)


def open_scripted(
    trt: StandinModule,
    engine: ScriptedEngine | None = None,
    memory: FakeDeviceMemory | None = None,
    **request: Any,
) -> tuple[TensorrtSession, ScriptedEngine, FakeDeviceMemory]:
    """Open a session over a scripted engine."""
    engine, memory = engine or ScriptedEngine(), memory or FakeDeviceMemory()
    engine.install(trt)
    session = open_engine(trt, PLAN, memory, EngineRequest(**request))
    return session, engine, memory


def ramp(*shape: int, dtype: Any = np.float32) -> Array:
    """Return 0, 1, 2, ... in a shape."""
    return np.arange(np.prod(shape, dtype=np.int64)).astype(dtype).reshape(shape)
