"""CUDA by two packages, each held against a stand-in with its own names and parameters."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.backends.cuda.fake_cuda import (
    CAPABILITY,
    NAME,
    CudaError,
    FakeCudaRuntime,
    FakePycudaDriver,
)
from trtdeploy.backends.cuda import opening
from trtdeploy.backends.cuda.cuda_python_memory import CudaMemory
from trtdeploy.backends.cuda.device_memory import LEGACY_STREAM, DeviceMemory, GpuDevice
from trtdeploy.backends.cuda.local_gpu import LocalGpu
from trtdeploy.backends.cuda.opening import open_device_memory
from trtdeploy.backends.cuda.pycuda_memory import PycudaMemory
from trtdeploy.core.errors import ExecutionError, MissingDependencyError, NotPossibleError

Install = Callable[[dict[str, str]], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Return what puts packages on the path, in place of whatever this machine has."""
    before = {name: module for name, module in sys.modules.items() if is_cuda(name)}

    def put(files: dict[str, str]) -> None:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        monkeypatch.syspath_prepend(str(tmp_path))
        forget_packages()

    yield put
    forget_packages()
    sys.modules.update(before)


def is_cuda(name: str) -> bool:
    return name.partition(".")[0] in {"cuda", "pycuda"}


def forget_packages() -> None:
    """Have Python import both packages anew."""
    for name in [name for name in sys.modules if is_cuda(name)]:
        del sys.modules[name]


BECOME = (
    "import sys\nfrom tests.backends.cuda.fake_cuda import {0}\nsys.modules[__name__] = {0}()\n"
)
CUDA = {"cuda/__init__.py": ""}
NEW = {
    **CUDA,
    "cuda/bindings/__init__.py": "",
    "cuda/bindings/runtime.py": BECOME.format("FakeCudaRuntime"),
}
OLD = {**CUDA, "cuda/cudart.py": BECOME.format("FakeCudaRuntime")}
PYCUDA = {"pycuda/__init__.py": "", "pycuda/driver.py": BECOME.format("FakePycudaDriver")}
OTHER = {**CUDA, "cuda/pathfinder/__init__.py": ""}


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        (NEW, CudaMemory),
        (OLD, CudaMemory),
        (OTHER | PYCUDA, PycudaMemory),
        (NEW | PYCUDA, CudaMemory),
    ],
    ids=["cuda.bindings", "cuda.cudart", "pycuda", "both"],
)
def test_whichever_package_is_installed_is_used(
    files: dict[str, str], kind: type[Any], install: Install
) -> None:
    install(files)
    memory = open_device_memory()
    assert isinstance(memory, kind)
    assert memory.device == GpuDevice(0, NAME, "8.7")
    assert memory.library.startswith("cuda-python" if kind is CudaMemory else "PyCUDA")


def test_another_package_named_cuda_is_not_mistaken(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(OTHER)
    monkeypatch.setattr(opening, "is_installed", lambda module: module == "cuda")
    monkeypatch.setattr(opening, "find_local_gpu", lambda: LocalGpu("NVIDIA L4", "8.9"))
    with pytest.raises(MissingDependencyError, match="NVIDIA L4 needs cuda-python or PyCUDA") as e:
        open_device_memory()
    assert "pip install cuda-python" in e.value.hint
    assert "pip install pycuda" in e.value.hint


def test_no_package_and_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine without a GPU a package would not help, so none is advised."""
    monkeypatch.setattr(opening, "is_installed", lambda _module: False)
    monkeypatch.setattr(opening, "find_local_gpu", lambda: None)
    with pytest.raises(NotPossibleError, match="this machine has none"):
        open_device_memory()


def make_cuda() -> tuple[CudaMemory, FakeCudaRuntime]:
    runtime = FakeCudaRuntime()
    return CudaMemory(runtime, 1), runtime


def make_pycuda() -> tuple[PycudaMemory, FakePycudaDriver]:
    driver = FakePycudaDriver()
    return PycudaMemory(driver, 0), driver


Make = Callable[[], tuple[Any, Any]]
BOTH = pytest.mark.parametrize("make", [make_cuda, make_pycuda], ids=["cuda", "pycuda"])


@BOTH
def test_bytes_travel_there_and_back(make: Make) -> None:
    memory: DeviceMemory = make()[0]
    sent = np.arange(300, dtype=np.float32)
    with memory.current():
        stream, address = memory.create_stream(), memory.allocate(1200)
        pinned = memory.allocate_pinned(1200)
        assert (pinned.dtype, pinned.shape) == (np.uint8, (1200,))
        memory.copy_to_device(address, sent, stream)
        memory.copy_to_host(pinned, address, stream)
        memory.synchronize(stream)
        assert np.array_equal(pinned.view(np.float32), sent)
        memory.free_pinned(pinned)
        memory.free(address)
        memory.destroy_stream(stream)
    assert address % 256 == 0


@BOTH
@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, np.bool_, np.int64])
@pytest.mark.parametrize("shape", [(2, 3), ()])
def test_arrays_of_every_type_travel(make: Make, dtype: Any, shape: tuple[int, ...]) -> None:
    memory: DeviceMemory = make()[0]
    sent, arrived = np.ones(shape, dtype), np.zeros(shape, dtype)
    with memory.current():
        stream, address = memory.create_stream(), memory.allocate(64)
        memory.copy_to_device(address, sent, stream)
        memory.copy_to_host(arrived, address, stream)
    assert np.array_equal(arrived, sent)


@BOTH
def test_no_memory_left(make: Make) -> None:
    memory, fake = make()
    fake.failing["cudaMalloc"] = CudaError.cudaErrorMemoryAllocation
    fake.failing["mem_alloc"] = FakePycudaDriver.MemoryError("out of memory")
    said = "NVIDIA Fake 100 has no 3 GiB left"
    with memory.current(), pytest.raises(NotPossibleError, match=said) as info:
        memory.allocate(3 << 30)
    assert "smaller sizes" in info.value.hint


@BOTH
def test_a_failure_names_the_call(make: Make) -> None:
    memory, fake = make()
    with memory.current():
        stream = memory.create_stream()
        fake.failing["cudaStreamSynchronize"] = CudaError.cudaErrorIllegalAddress
        fake.failing["synchronize"] = FakePycudaDriver.Error("illegal address")
        with pytest.raises(ExecutionError, match=r"ynchronize.* failed.*(Illegal|illegal)"):
            memory.synchronize(stream)


@BOTH
def test_the_device_is_current_inside_the_block_only(make: Make) -> None:
    memory, fake = make()

    def fail_inside() -> None:
        with memory.current():
            assert getattr(fake, "current", 1) == 1
            raise KeyError

    for _ in range(2):
        with pytest.raises(KeyError):
            fail_inside()
    assert getattr(fake, "current", 0) == 0
    assert getattr(fake, "stack", 0) == 0


def test_cuda_waits_for_the_stream_of_anybody() -> None:
    memory, runtime = make_cuda()
    with memory.current():
        stream = memory.create_stream()
        before = len(runtime.done)
        memory.wait_for(stream, 0xABC)
        made, recorded, waited, released = runtime.done[before:]
    assert made == ("cudaEventCreateWithFlags", 2)
    event = recorded[1]
    assert recorded == ("cudaEventRecord", event, 0xABC)
    assert waited == ("cudaStreamWaitEvent", stream, event, 0)
    assert released == ("cudaEventDestroy", event)


def test_cuda_captures_and_replays() -> None:
    memory, runtime = make_cuda()
    with memory.current():
        stream = memory.create_stream()
        memory.begin_capture(stream)
        graph = memory.end_capture(stream)
        memory.launch_graph(graph, stream)
        memory.destroy_graph(graph)
    assert ("cudaStreamBeginCapture", stream, "thread") in runtime.done
    assert ("cudaGraphLaunch", graph, stream) in runtime.done
    assert runtime.names().count("cudaGraphDestroy") == 1
    assert runtime.names().count("cudaGraphExecDestroy") == 1


def test_cuda_streams_do_not_wait_for_the_default_stream() -> None:
    memory, runtime = make_cuda()
    with memory.current():
        memory.create_stream()
    assert ("cudaStreamCreateWithFlags", 1) in runtime.done


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (LEGACY_STREAM, [("record", None), ("wait_for_event", None)]),
        (0xABC, [("wait for all",)]),
    ],
)
def test_pycuda_waits_for_more_where_it_cannot_tell(
    other: int, expected: list[tuple[Any, ...]]
) -> None:
    memory, driver = make_pycuda()
    with memory.current():
        stream = memory.create_stream()
        before = len(driver.done)
        memory.wait_for(stream, other)
        found = driver.done[before:]
    assert [(call[0], *call[-1:]) if len(call) > 1 else call for call in found] == expected
    assert ("Stream", 1) in driver.done


def test_pycuda_captures_nothing() -> None:
    memory, _ = make_pycuda()
    assert not memory.can_capture
    for refuse in (memory.begin_capture, memory.end_capture, memory.destroy_graph):
        with pytest.raises(NotPossibleError, match="PyCUDA"):
            refuse(1)
    with pytest.raises(NotPossibleError, match="PyCUDA"):
        memory.launch_graph(1, 2)


def open_fake_cuda(
    monkeypatch: pytest.MonkeyPatch, runtime: FakeCudaRuntime, index: int = 0
) -> DeviceMemory:
    from trtdeploy.backends.cuda import cuda_python_memory as device_memory_cuda

    monkeypatch.setattr(device_memory_cuda, "_import_runtime", lambda: runtime)
    return device_memory_cuda.open_cuda_memory(index)


def test_no_gpu_or_no_such_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = FakeCudaRuntime()
    assert open_fake_cuda(monkeypatch, runtime, 1).device.index == 1
    with pytest.raises(NotPossibleError, match="no GPU 2: CUDA reports 2"):
        open_fake_cuda(monkeypatch, runtime, 2)
    runtime.failing["cudaGetDeviceCount"] = CudaError.cudaErrorNoDevice
    with pytest.raises(NotPossibleError, match="cudaErrorNoDevice: what went wrong"):
        open_fake_cuda(monkeypatch, runtime)
    with pytest.raises(NotPossibleError, match="it reports 0"):
        open_fake_cuda(monkeypatch, FakeCudaRuntime(count=0))


def test_capability_of_the_fake_is_read() -> None:
    assert make_pycuda()[0].device.compute_capability == ".".join(map(str, CAPABILITY))


def test_the_real_cuda_python_takes_our_calls() -> None:
    """Without a driver every call answers an error; a wrong name or parameter would raise."""
    runtime = pytest.importorskip("cuda.bindings.runtime")
    stream, event = runtime.cudaStream_t(4096), runtime.cudaEvent_t(4096)
    calls = {
        "cudaGetDeviceCount": (), "cudaGetDevice": (), "cudaSetDevice": (0,),
        "cudaGetDeviceProperties": (0,), "cudaMalloc": (256,), "cudaMallocHost": (256,),
        "cudaStreamCreateWithFlags": (runtime.cudaStreamNonBlocking,),
        "cudaEventCreateWithFlags": (int(runtime.cudaEventDisableTiming),),
    }  # fmt: skip
    for name, arguments in calls.items():
        status = getattr(runtime, name)(*arguments)[0]
        assert isinstance(status, runtime.cudaError_t), name
    assert (int(stream), int(event)) == (4096, 4096)
    for name in ("cudaGraphInstantiate", "cudaGraphLaunch", "cudaStreamEndCapture"):
        assert callable(getattr(runtime, name))
