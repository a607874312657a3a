"""A run from feeds to outputs: the same code on every TensorRT, by tensor names only."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.backends.fake_device_memory import FakeDeviceMemory, allocate_aligned
from trtdeploy.backends.session import Session
from trtdeploy.core.dtypes import DType
from trtdeploy.core.errors import ExecutionError, FeedError, NotPossibleError, UsageError
from trtdeploy.core.tensors import TensorSpec

from .session_cases import PLAN, ScriptedEngine, open_scripted, ramp
from .standin import VERSIONS, StandinModule, TensorContent, make_trt_module

REMOVED = {
    "execute", "execute_v2", "execute_async", "execute_async_v2", "get_binding_shape",
    "set_binding_shape", "num_bindings", "get_binding_name", "get_profile_shape", "max_batch_size",
}  # fmt: skip

ENDS = (VERSIONS[0], VERSIONS[-2], VERSIONS[-1])
"""Oldest, newest and RTX: enough where our own code decides, not TensorRT's API."""


@pytest.fixture(params=VERSIONS)
def trt(request: pytest.FixtureRequest) -> StandinModule:
    """Return the stand-in of each version."""
    return make_trt_module(request.param)


def test_a_run_returns_what_the_engine_computes(trt: StandinModule) -> None:
    session, _, memory = open_scripted(trt)
    with session:
        for batch in (1, 4, 2):
            x = ramp(batch, 3)
            assert np.array_equal(session.run({"x": x})["y"], x * 2)
    assert (memory.live, memory.pinned, memory.streams) == ({}, {}, set())


def test_only_calls_by_tensor_name_are_made(trt: StandinModule) -> None:
    session, _, memory = open_scripted(trt)
    with session:
        session.run({"x": ramp(2, 3)})
        (stream,) = memory.streams
    used = {record.member for record in trt.calls}
    assert not used & REMOVED
    (loaded,) = trt.calls.select("Runtime", "deserialize_cuda_engine")
    assert loaded.args == (PLAN,)
    executed = trt.calls.select("IExecutionContext", "execute_async_v3")
    assert [record.args for record in executed] == [(stream,)]
    shapes = trt.calls.select("IExecutionContext", "set_input_shape")
    assert [record.args for record in shapes] == [("x", (4, 3)), ("x", (2, 3))]


def test_it_is_a_session_that_describes_itself(trt: StandinModule) -> None:
    session, _, _ = open_scripted(trt, declared={"x": ("batch", 3), "y": (7, 3, 1)})
    assert isinstance(session, Session)
    assert session.inputs == (TensorSpec("x", DType.FLOAT32, ("batch", 3)),)
    assert session.outputs == (TensorSpec("y", DType.FLOAT32, ("?0", 3)),)
    assert session.device == f"Fake GPU (compute capability 8.9), {trt.context.label}"
    assert session.optimization_profiles[0].shapes["x"].max == (4, 3)


def test_memory_for_the_largest_sizes_is_taken_once(trt: StandinModule) -> None:
    session, _, memory = open_scripted(trt)
    before = len(memory.done)
    with session:
        for batch in (1, 4, 2, 4):
            session.run({"x": ramp(batch, 3)})
        names = memory.names()[before:]
    assert "allocate" not in names
    assert "allocate_pinned" not in names
    assert names.count("copy_to_device") == names.count("copy_to_host") == 4
    assert names.count("synchronize") == 4


def test_nothing_is_set_again_that_has_not_changed(trt: StandinModule) -> None:
    session, _, _ = open_scripted(trt)
    session.run({"x": ramp(2, 3)})
    trt.calls.clear()
    session.run({"x": ramp(2, 3) + 1})
    assert [r.member for r in trt.calls if r.kind == "call"] == ["execute_async_v3"]


def test_outputs_belong_to_the_caller(trt: StandinModule) -> None:
    session, _, _ = open_scripted(trt)
    first = session.run({"x": ramp(2, 3)})["y"]
    kept = first.copy()
    session.run({"x": ramp(2, 3) + 5})
    assert np.array_equal(first, kept)
    session.close()
    assert np.array_equal(first, kept)
    assert first.flags.owndata


def test_strided_feeds_are_copied_as_they_read(trt: StandinModule) -> None:
    session, _, _ = open_scripted(trt)
    x = ramp(3, 2).T
    assert not x.flags.c_contiguous
    assert np.array_equal(session.run({"x": x})["y"], x * 2)


@pytest.mark.parametrize("dtype", ["FLOAT", "HALF", "INT8", "INT32", "BOOL", "UINT8"])
@pytest.mark.parametrize("version", ENDS)
def test_element_types(dtype: str, version: str) -> None:
    trt = make_trt_module(version)
    tensors = (TensorContent("x", dtype, (2, 2)),), (TensorContent("y", dtype, (2, 2)),)
    engine = ScriptedEngine(*tensors, profiles=({},), compute=lambda given: {"y": given["x"]})
    session, _, _ = open_scripted(trt, engine)
    wanted = {"FLOAT": "f4", "HALF": "f2", "INT8": "i1", "INT32": "i4", "BOOL": "?", "UINT8": "u1"}
    x = ramp(2, 2, dtype=wanted[dtype])
    y = session.run({"x": x})["y"]
    assert y.dtype == x.dtype
    assert np.array_equal(y, x)


@pytest.mark.parametrize(
    ("feeds", "said"),
    [
        ({}, "input 'x' .*is missing; given: nothing"),
        ({"X": ramp(1, 3)}, "no input 'X'. Valid: 'x'"),
        ({"x": ramp(1, 3), "z": ramp(1)}, "no input 'z'"),
        ({"x": ramp(1, 3, dtype=np.float64)}, "must be float32, not float64"),
        ({"x": ramp(3)}, r"must have rank 2 \(\?0x3\), not 1"),
        ({"x": ramp(1, 4)}, "must have 3 on axis 1"),
        ({"x": ramp(5, 3)}, r"profile 0 .*'x' has 5 on axis 0 \(5x3\), and it takes 1 to 4"),
        ({"x": [[1.0, 2.0, 3.0]]}, "must be a numpy array .*, not builtins.list"),
    ],
)
@pytest.mark.parametrize("version", ENDS)
def test_feeds_that_do_not_fit_are_refused_before_anything_runs(
    feeds: dict[str, Any], said: str, version: str
) -> None:
    trt = make_trt_module(version)
    session, engine, memory = open_scripted(trt)
    before = len(memory.done)
    with pytest.raises(FeedError, match=said):
        session.run(feeds)
    assert engine.runs == 0
    assert len(memory.done) == before
    assert np.array_equal(session.run({"x": ramp(1, 3)})["y"], ramp(1, 3) * 2)


class GpuArray:
    """An array of another package that lies on the (fake) GPU."""

    def __init__(self, array: np.ndarray[Any, Any], **described: Any) -> None:
        self._store = allocate_aligned(array.nbytes)
        self._store[:] = array.reshape(-1).view(np.uint8)
        self.__cuda_array_interface__ = {
            "shape": array.shape,
            "typestr": array.dtype.str,
            "data": (self._store.ctypes.data, False),
            "version": 3,
            "stream": 42,
            **described,
        }

    @property
    def address(self) -> int:
        return int(self._store.ctypes.data)


def test_arrays_on_the_gpu_are_read_where_they_are(trt: StandinModule) -> None:
    session, engine, memory = open_scripted(trt)
    (stream,) = memory.streams
    array = GpuArray(ramp(2, 3))
    before = len(memory.done)
    assert np.array_equal(session.run({"x": array})["y"], ramp(2, 3) * 2)
    assert engine.addresses["x"] == array.address
    assert memory.done[before] == ("wait_for", stream, 42)
    assert "copy_to_device" not in memory.names()[before:]
    assert np.array_equal(session.run({"x": ramp(1, 3)})["y"], ramp(1, 3) * 2)  # and back


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (GpuArray(ramp(2, 3), typestr="<f8"), "must be float32, not float64"),
        (GpuArray(ramp(2, 3), strides=(4, 8)), "packed in row-major order"),
        (GpuArray(ramp(2, 3), data=(1000, False)), "begins at address 0x3e8; .*multiples of 256"),
        (GpuArray(ramp(6), shape=(6,)), "must have rank 2"),
    ],
)
@pytest.mark.parametrize("version", ENDS)
def test_arrays_on_the_gpu_are_checked_too(array: GpuArray, said: str, version: str) -> None:
    session, engine, _ = open_scripted(make_trt_module(version))
    with pytest.raises(FeedError, match=said):
        session.run({"x": array})
    assert engine.runs == 0


def test_a_failing_run_is_an_error_and_the_next_one_works(trt: StandinModule) -> None:
    def fail(context: Any, _stream: int) -> bool:
        logger.log(trt.ILogger.Severity.ERROR, "CUDA error 700")
        return False

    session, engine, _ = open_scripted(trt)
    logger: Any = trt.calls.select("Runtime", "__init__")[0].args[0]
    working = trt.script["IExecutionContext.execute_async_v3"]
    trt.script["IExecutionContext.execute_async_v3"] = fail
    with pytest.raises(ExecutionError, match="could not run the engine: CUDA error 700") as info:
        session.run({"x": ramp(1, 3)})
    assert info.value.exit_code == 6
    trt.script["IExecutionContext.execute_async_v3"] = working
    assert np.array_equal(session.run({"x": ramp(1, 3)})["y"], ramp(1, 3) * 2)
    assert engine.runs == 1


REFUSALS = {
    "set_optimization_profile_async": "refuses optimization profile 0",
    "set_input_shape": "refuses shape",
    "set_tensor_address": "refuses address",
}


@pytest.mark.parametrize(("method", "said"), REFUSALS.items())
def test_every_refusal_of_the_context_is_an_error(
    method: str, said: str, trt: StandinModule
) -> None:
    engine = ScriptedEngine(overrides={f"IExecutionContext.{method}": False})
    memory = FakeDeviceMemory()
    with pytest.raises(ExecutionError, match=f"{said}.*gives no reason"):
        open_scripted(trt, engine, memory)
    assert (memory.live, memory.pinned, memory.streams) == ({}, {}, set())


@pytest.mark.parametrize(
    ("answer", "said"), [(["x"], "sizes of 'x'"), (RuntimeError("code -1"), "code -1")]
)
def test_sizes_that_cannot_be_inferred(answer: Any, said: str, trt: StandinModule) -> None:
    def infer(_context: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    session, _, _ = open_scripted(trt)
    trt.script["IExecutionContext.infer_shapes"] = infer
    with pytest.raises(ExecutionError, match=said):
        session.run({"x": ramp(2, 3)})


def test_a_closed_session_runs_nothing(trt: StandinModule) -> None:
    session, engine, memory = open_scripted(trt)
    session.close()
    session.close()
    with pytest.raises(UsageError, match="closed"):
        session.run({"x": ramp(1, 3)})
    assert engine.runs == 0
    assert memory.names().count("destroy_stream") == 1


def test_no_memory_for_the_largest_sizes(trt: StandinModule) -> None:
    memory = FakeDeviceMemory()
    memory.limit_bytes = 10
    with pytest.raises(NotPossibleError, match="no 256 bytes left"):
        open_scripted(trt, memory=memory)
    assert (memory.live, memory.pinned, memory.streams) == ({}, {}, set())


def test_threads_share_a_session_one_after_another() -> None:
    session, _, _ = open_scripted(make_trt_module("10.3.0"))
    wrong: list[int] = []

    def work(seed: int) -> None:
        for step in range(30):
            x = ramp(1 + (seed + step) % 4, 3) + seed
            if not np.array_equal(session.run({"x": x})["y"], x * 2):
                wrong.append(seed)

    start: Callable[[int], threading.Thread] = lambda seed: threading.Thread(  # noqa: E731
        target=work, args=(seed,)
    )
    threads = [start(seed) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []
