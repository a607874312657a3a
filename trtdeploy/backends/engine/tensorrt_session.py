"""Sessions of TensorRT and TensorRT-RTX: one implementation, the module is an argument."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from trtdeploy.backends.cuda.device_array import DeviceArray, read_device_array
from trtdeploy.backends.cuda.device_memory import DeviceMemory
from trtdeploy.backends.engine.engine_execution import EngineExecution
from trtdeploy.backends.engine.engine_loading import (
    EngineRequest,
    LoadedEngine,
    captures_itself,
    create_context,
    load_engine,
    save_runtime_cache,
)
from trtdeploy.backends.engine.engine_tensors import read_engine_tensors, read_optimization_profiles
from trtdeploy.backends.engine.graph_capture import GraphCapture
from trtdeploy.backends.engine.profile_choice import ProfileChoice
from trtdeploy.backends.engine.runtime_log import logger
from trtdeploy.backends.feed_check import FeedCheck
from trtdeploy.backends.installed import INSTALL
from trtdeploy.backends.session import Session, SessionFeeds
from trtdeploy.backends.trt_module import name_product
from trtdeploy.core.arrays import Array
from trtdeploy.core.errors import EngineMismatchError, FeedError, NotPossibleError, UsageError
from trtdeploy.core.ranges import OptimizationProfile
from trtdeploy.core.tensors import TensorSpec


def open_engine(
    trt: Any, plan: bytes, memory: DeviceMemory, request: EngineRequest
) -> TensorrtSession:
    """Load a plan that was checked before, and return its session.

    Args:
        trt: The ``tensorrt`` or ``tensorrt_rtx`` module.
        plan: The plan, from its first byte.
        memory: The GPU it runs on.
        request: How to load it.

    Raises:
        EngineFileError: TensorRT refuses the plan.
        EngineMismatchError: Its optimization profiles are not those of the manifest.
        NotPossibleError: This machine or this TensorRT lacks something.
        ExecutionError: TensorRT or CUDA failed.
    """
    with memory.current():
        loaded = load_engine(trt, plan, request)
        return TensorrtSession(trt, loaded, memory, request)


class TensorrtSession(Session):
    """An engine on a GPU.

    Inputs are numpy arrays, which are copied to the GPU, or arrays that lie there already
    (``__dlpack__``, ``__cuda_array_interface__``), which are read where they are. Outputs come back
    as numpy arrays. Device memory and page-locked host memory for the largest sizes are taken once.

    Thread-safe: threads may share a session, and their calls run one after another, because an
    execution context holds the state of one run. For runs at the same time open one session each.

    Use ``open_engine``.

    Args:
        trt: The TensorRT module.
        loaded: The engine.
        memory: The GPU; current in this thread.
        request: How it was loaded.
    """

    def __init__(
        self, trt: Any, loaded: LoadedEngine, memory: DeviceMemory, request: EngineRequest
    ) -> None:
        self._lock = threading.Lock()
        self._memory = memory
        self._request = request
        self._loaded: LoadedEngine | None = loaded
        tensors = read_engine_tensors(trt, loaded.engine, request.declared)
        self._input_tensors = tuple(tensor for tensor in tensors if tensor.is_input)
        self._inputs = tuple(tensor.spec for tensor in self._input_tensors)
        self._outputs = tuple(tensor.spec for tensor in tensors if not tensor.is_input)
        self._profiles = read_optimization_profiles(
            loaded.engine, self._input_tensors, request.optimization_profiles
        )
        _require_described(self._profiles, request.optimization_profiles)
        self._check = FeedCheck(self._inputs, (np.ndarray, DeviceArray))
        self._choice = ProfileChoice(self._profiles)
        self._device = (
            f"{memory.device.name} (compute capability {memory.device.compute_capability}), "
            f"{name_product(trt)}"
        )
        context, self._cache = create_context(trt, loaded, request)
        self._execution = EngineExecution(trt, context, memory, tensors, loaded.log)
        try:
            for index, profile in enumerate(self._profiles):
                self._execution.reserve(index, profile)
            self._graph = self._make_graph(trt)
        except BaseException:
            self._execution.release()
            raise

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """What ``run`` takes; a shape tensor is always a numpy array."""
        return self._inputs

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """What ``run`` returns."""
        return self._outputs

    @property
    def device(self) -> str:
        """E.g. ``NVIDIA L4 (compute capability 8.9), TensorRT 10.3.0``."""
        return self._device

    @property
    def optimization_profiles(self) -> tuple[OptimizationProfile, ...]:
        """The sizes the engine takes, as the engine itself says."""
        return self._profiles

    def run(self, feeds: SessionFeeds) -> dict[str, Array]:
        """Run the engine once; see ``Session.run``.

        Arrays on the GPU may be released or overwritten as soon as this returns.
        """
        with self._lock, self._memory.current():
            if self._loaded is None:
                raise UsageError("the session is closed", hint="Run it inside its with block.")
            arrays = {name: self._take(name, value) for name, value in feeds.items()}
            self._check.check(arrays)
            values = {t.name: _read_values(arrays[t.name], t.name) for t in self._host_inputs()}
            shapes = {spec.name: arrays[spec.name].shape for spec in self._inputs}
            return self._execute(self._choice.choose(shapes, values), arrays)

    def close(self) -> None:
        """Free the engine and its memory; keep the runtime cache of TensorRT-RTX."""
        with self._lock:
            if self._loaded is None:
                return
            self._save_cache()
            with self._memory.current():
                if self._graph is not None:
                    self._graph.release()
                self._execution.release()
                self._loaded = self._cache = None

    def _execute(self, index: int, arrays: Mapping[str, Any]) -> dict[str, Array]:
        try:
            self._execution.prepare(index, arrays)
            if self._graph is None:
                self._execution.enqueue()
            else:
                self._graph.run(self._execution.key)
            return self._execution.collect()
        except BaseException:
            self._execution.recover()
            if self._graph is not None:
                self._graph.release()
            raise

    def _take(self, name: str, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return value
        found = read_device_array(name, value, self._memory, self._execution.stream)
        return value if found is None else found

    def _host_inputs(self) -> tuple[Any, ...]:
        return tuple(tensor for tensor in self._input_tensors if tensor.on_host)

    def _make_graph(self, trt: Any) -> GraphCapture | None:
        if not self._request.cuda_graph or captures_itself(trt):
            return None
        unsized = [spec.name for spec in self._outputs if self._execution.sizes_itself(spec.name)]
        if unsized:
            raise NotPossibleError(
                f"the size of {', '.join(map(repr, unsized))} depends on the data, so the engine "
                "cannot be captured as a CUDA graph",
                hint="Load it without cuda_graph.",
            )
        if not self._memory.can_capture:
            raise NotPossibleError(
                f"{self._memory.library} captures no CUDA graphs",
                hint=f"Install cuda-python: {INSTALL['cuda']}",
            )
        return GraphCapture(self._memory, self._execution.stream, self._execution.enqueue)

    def _save_cache(self) -> None:
        path = self._request.runtime_cache
        if self._cache is None or path is None:
            return
        try:
            save_runtime_cache(self._cache, path)
        except OSError as error:  # only time is lost
            logger.warning("the runtime cache %s cannot be written: %s", path, error)


def _read_values(array: Array | DeviceArray, name: str) -> tuple[int, ...]:
    if isinstance(array, DeviceArray):
        raise FeedError(
            f"input {name!r} is a shape tensor: TensorRT reads its values in host memory",
            hint="Give it as a numpy array.",
        )
    return tuple(int(value) for value in array.reshape(-1))


def _require_described(
    found: tuple[OptimizationProfile, ...], described: tuple[OptimizationProfile, ...]
) -> None:
    """Compare sizes with those of the manifest, which the engine was built for."""
    if not described:
        return
    for index, (engine, manifest) in enumerate(zip(found, described, strict=False)):
        for name, shape in engine.shapes.items():
            wanted = manifest.shapes.get(name)
            if wanted is not None and wanted != shape:
                raise EngineMismatchError(
                    f"optimization profile {index} of the engine has {shape} for {name!r}, and "
                    f"the manifest says {wanted}",
                    hint="The folder was changed by hand: build it again.",
                )
    varies = any(s.min != s.max for p in described for s in p.shapes.values())
    if varies and len(found) != len(described):
        raise EngineMismatchError(
            f"the engine has {len(found)} optimization profiles, and the manifest says "
            f"{len(described)}",
            hint="The folder was changed by hand: build it again.",
        )
