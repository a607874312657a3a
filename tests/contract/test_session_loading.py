"""Loading a plan: permissions, lean runtimes, validity, runtime caches and CUDA graphs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.backends.fake_device_memory import FakeDeviceMemory
from trtdeploy.core.errors import (
    EngineFileError,
    EngineMismatchError,
    ExecutionError,
    NotPossibleError,
)

from .engine_cases import RTX, TENSORRT
from .session_cases import ScriptedEngine, open_scripted, ramp
from .standin import VERSIONS, StandinModule, TensorContent, make_trt_module


@pytest.fixture(params=VERSIONS)
def trt(request: pytest.FixtureRequest) -> StandinModule:
    """Return the stand-in of each version."""
    return make_trt_module(request.param)


@pytest.fixture(params=TENSORRT)
def tensorrt(request: pytest.FixtureRequest) -> StandinModule:
    """Return the stand-in of each TensorRT."""
    return make_trt_module(request.param)


@pytest.fixture(params=RTX)
def rtx(request: pytest.FixtureRequest) -> StandinModule:
    """Return the stand-in of TensorRT-RTX."""
    return make_trt_module(request.param)


@pytest.mark.parametrize("allowed", [False, True])
def test_host_code_needs_the_explicit_permission(allowed: bool, trt: StandinModule) -> None:
    open_scripted(trt, allow_host_code=allowed)
    asked = trt.calls.select("Runtime", "engine_host_code_allowed", "set")
    assert [record.args for record in asked] == ([(True,)] if allowed else [])
    if allowed:
        members = [record.member for record in trt.calls]
        set_at = members.index("engine_host_code_allowed")
        assert set_at < members.index("deserialize_cuda_engine")


def test_a_lean_runtime_loads_the_plan(trt: StandinModule) -> None:
    open_scripted(trt, lean_runtime=Path("libnvinfer_lean.so.8"))
    (loaded,) = trt.calls.select("Runtime", "load_runtime")
    assert loaded.args == ("libnvinfer_lean.so.8",)
    (read,) = trt.calls.select("Runtime", "deserialize_cuda_engine")
    assert read.instance is not loaded.instance


def test_a_lean_runtime_that_does_not_load(trt: StandinModule) -> None:
    trt.script["Runtime.load_runtime"] = None
    with pytest.raises(NotPossibleError, match=r"cannot load the lean runtime lean\.so"):
        open_scripted(trt, lean_runtime=Path("lean.so"))
    assert trt.calls.select("Runtime", "deserialize_cuda_engine") == []


def test_a_plan_that_tensorrt_refuses(trt: StandinModule) -> None:
    def refuse(runtime: Any, _plan: bytes) -> None:
        severity = trt.ILogger.Severity
        runtime._state["logger"].log(severity.WARNING, "not recommended")
        runtime._state["logger"].log(severity.ERROR, "Version tag does not match")

    trt.script["Runtime.deserialize_cuda_engine"] = refuse
    with pytest.raises(EngineFileError, match=r"refuses the engine: Version tag does not match$"):
        open_scripted(trt)


def test_tensorrt_does_not_start_without_a_driver(
    trt: StandinModule, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(logger: Any) -> None:
        logger.log(trt.ILogger.Severity.ERROR, "CUDA initialization failure with error: 35")
        raise TypeError("pybind11::init(): factory function returned nullptr")

    monkeypatch.setattr(trt, "Runtime", fail)
    with pytest.raises(NotPossibleError, match=r"does not start on this machine: .*error: 35"):
        open_scripted(trt)


def test_no_execution_context(trt: StandinModule) -> None:
    trt.script["ICudaEngine.create_execution_context"] = None
    with pytest.raises(ExecutionError, match="cannot create an execution context"):
        open_scripted(trt)


def test_rtx_is_asked_before_it_deserialises(rtx: StandinModule) -> None:
    answer = (rtx.context.member("EngineValidity", "INVALID"), 1 | 4)
    engine = ScriptedEngine(
        overrides={"Runtime.get_engine_validity": lambda _runtime, _plan: answer}
    )
    with pytest.raises(EngineMismatchError, match="version mismatch, old cuda driver"):
        open_scripted(rtx, engine)
    assert rtx.calls.select("Runtime", "deserialize_cuda_engine") == []


def test_a_plain_load_configures_nothing(trt: StandinModule) -> None:
    open_scripted(trt)
    (created,) = trt.calls.select("ICudaEngine", "create_execution_context")
    assert created.args == ()
    assert trt.calls.select("ICudaEngine", "create_runtime_config") == []


def test_rtx_keeps_its_kernels(rtx: StandinModule, tmp_path: Path) -> None:
    path = tmp_path / "kernels.cache"
    rtx.script["IRuntimeCache.serialize"] = lambda _cache: b"kernels"
    session, _, _ = open_scripted(rtx, runtime_cache=path)
    assert rtx.calls.select("IRuntimeCache", "deserialize") == []
    (created,) = rtx.calls.select("ICudaEngine", "create_execution_context")
    assert type(created.args[0]).__name__ == "IRuntimeConfig"
    assert len(rtx.calls.select("IRuntimeConfig", "set_runtime_cache")) == 1
    session.close()
    assert path.read_bytes() == b"kernels"
    open_scripted(rtx, runtime_cache=path)
    (read,) = rtx.calls.select("IRuntimeCache", "deserialize")
    assert read.args == (b"kernels",)


def test_a_stale_or_unwritable_cache_only_costs_time(
    rtx: StandinModule, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rtx.script["IRuntimeCache.serialize"] = lambda _cache: b"kernels"
    rtx.script["IRuntimeCache.deserialize"] = False
    path = tmp_path / "kernels.cache"
    path.write_bytes(b"of another GPU")
    session, _, _ = open_scripted(rtx, runtime_cache=path)
    session.close()
    assert path.read_bytes() == b"kernels"
    session, _, _ = open_scripted(rtx, runtime_cache=tmp_path / "missing" / "kernels.cache")
    session.close()
    assert "cannot be written" in caplog.text


def test_only_rtx_has_a_runtime_cache(tensorrt: StandinModule, tmp_path: Path) -> None:
    with pytest.raises(NotPossibleError, match="has no runtime cache"):
        open_scripted(tensorrt, runtime_cache=tmp_path / "cache")


def test_rtx_captures_cuda_graphs_itself(rtx: StandinModule) -> None:
    session, _, memory = open_scripted(rtx, cuda_graph=True)
    (chosen,) = rtx.calls.select("IRuntimeConfig", "cuda_graph_strategy", "set")
    assert str(chosen.args[0]) == "CudaGraphStrategy.WHOLE_GRAPH_CAPTURE"
    session.run({"x": ramp(1, 3)})
    assert "begin_capture" not in memory.names()


def launch_really(memory: FakeDeviceMemory, trt: StandinModule) -> None:
    """Have a launched graph do what was captured: run the engine."""
    launch = memory.launch_graph
    execute: Any = trt.script["IExecutionContext.execute_async_v3"]

    def launch_and_run(graph: int, stream: int) -> None:
        launch(graph, stream)
        execute(None, stream)

    memory.launch_graph = launch_and_run  # type: ignore[method-assign]


def test_a_run_is_captured_once_and_replayed(tensorrt: StandinModule) -> None:
    session, engine, memory = open_scripted(tensorrt, cuda_graph=True)
    launch_really(memory, tensorrt)
    for step in range(4):
        x = ramp(2, 3) + step
        assert np.array_equal(session.run({"x": x})["y"], x * 2)
    names = memory.names()
    assert (names.count("begin_capture"), names.count("launch_graph")) == (1, 3)
    executed = tensorrt.calls.select("IExecutionContext", "execute_async_v3")
    assert len(executed) == 2  # plainly, and under capture
    assert engine.runs == 5
    session.close()
    assert memory.graphs == set()


def test_other_sizes_are_captured_anew(tensorrt: StandinModule) -> None:
    session, _, memory = open_scripted(tensorrt, cuda_graph=True)
    launch_really(memory, tensorrt)
    for batch in (2, 2, 3, 3, 2):
        x = ramp(batch, 3)
        assert np.array_equal(session.run({"x": x})["y"], x * 2)
    names = memory.names()
    assert (names.count("begin_capture"), names.count("launch_graph")) == (3, 2)
    assert len(memory.graphs) == 1


def test_work_that_cannot_be_captured(tensorrt: StandinModule) -> None:
    session, _, memory = open_scripted(tensorrt, cuda_graph=True)
    working: Any = tensorrt.script["IExecutionContext.execute_async_v3"]
    tensorrt.script["IExecutionContext.execute_async_v3"] = lambda context, stream: (
        False if memory.is_capturing else working(context, stream)
    )
    with pytest.raises(NotPossibleError, match="cannot be captured as a CUDA graph"):
        session.run({"x": ramp(2, 3)})
    assert (memory.is_capturing, memory.graphs) == (False, set())


def test_a_graph_needs_sizes_that_are_known(tensorrt: StandinModule) -> None:
    engine = ScriptedEngine(
        outputs=(TensorContent("y", shape=(-1,)),), infer=lambda _shapes, _values: {"y": (-1,)}
    )
    memory = FakeDeviceMemory()
    with pytest.raises(NotPossibleError, match="size of 'y' depends on the data"):
        open_scripted(tensorrt, engine, memory, cuda_graph=True)
    assert (memory.live, memory.streams) == ({}, set())


def test_a_graph_needs_a_library_that_captures(tensorrt: StandinModule) -> None:
    memory = FakeDeviceMemory()
    memory.can_capture = False
    with pytest.raises(NotPossibleError, match="fake CUDA captures no CUDA graphs"):
        open_scripted(tensorrt, memory=memory, cuda_graph=True)
