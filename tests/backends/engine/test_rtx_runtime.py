"""What the real TensorRT-RTX takes of our runtime code on a machine without a GPU."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.backends.fake_device_memory import FakeDeviceMemory
from trtdeploy.backends.engine.output_allocator import OutputStore, make_output_allocator
from trtdeploy.core.errors import NotPossibleError

tensorrt_rtx = pytest.importorskip("tensorrt_rtx")


def test_an_output_allocator_is_one_of_its_own() -> None:
    memory = FakeDeviceMemory()
    store = OutputStore(memory)
    allocator = make_output_allocator(tensorrt_rtx, store)
    assert isinstance(allocator, tensorrt_rtx.IOutputAllocator)
    with memory.current():
        address = allocator.reallocate_output_async("y", 0, 1000, 256, 7)
        assert (
            address == allocator.reallocate_output("y", address, 500, 256) == store.address_of("y")
        )
        assert store.address_of("z") == 0
        allocator.notify_shape("y", tensorrt_rtx.Dims((3, 4)))
        assert store.shapes == {"y": (3, 4)}
        memory.limit_bytes = 0
        assert allocator.reallocate_output("z", 0, 1, 256) == 0
        assert isinstance(store.error, NotPossibleError)
        store.begin_run()
        assert (store.shapes, store.error) == ({}, None)
        store.release()
    assert memory.live == {}


GARBAGE = """
import tensorrt_rtx as trt
from trtdeploy.backends.engine.engine_loading import EngineRequest, load_engine
from trtdeploy.core.errors import TrtdeployError
for plan in (b"", b"vtrt", b"vtrt" + bytes(60), b"garbage" * 100):
    try:
        load_engine(trt, plan, EngineRequest())
        print("loaded")
    except TrtdeployError as error:
        print(type(error).__name__)
"""


def test_garbage_is_refused_and_does_not_crash() -> None:
    """In a process of its own: a crash would end this one."""
    done = subprocess.run(
        [sys.executable, "-c", GARBAGE], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "loaded" not in done.stdout
    assert len(done.stdout.split()) == 4
