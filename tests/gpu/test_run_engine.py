"""Engines compiled and run on the GPU of this machine, against ONNX Runtime."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import trtdeploy
from tests.builders import FLOAT, FLOAT16, INT64, constant, model, op, random_array, save, value
from tests.building.models import save_convnet
from trtdeploy import SessionOptions
from trtdeploy.backends.onnxruntime.session import OnnxRuntimeSession
from trtdeploy.core.errors import FeedError
from trtdeploy.core.ranges import OptimizationProfile, ShapeRange, ValueRange

from .conftest import EngineMaker, Opener

pytestmark = pytest.mark.gpu

SMALL = OptimizationProfile(
    "small", {"images": ShapeRange((1, 3, 16, 16), (2, 3, 16, 16), (2, 3, 32, 32))}
)
LARGE = OptimizationProfile(
    "large", {"images": ShapeRange((3, 3, 16, 16), (4, 3, 32, 32), (8, 3, 64, 64))}
)
SIZES = [(1, 3, 16, 16), (2, 3, 32, 32), (1, 3, 17, 31)]


def run_baseline(path: Path, feeds: dict[str, Any]) -> dict[str, Any]:
    with OnnxRuntimeSession(path) as session:
        return session.run(feeds)


def test_fp32_equals_onnx_runtime_at_every_size(maker: EngineMaker) -> None:
    path = save_convnet(maker.folder / "net.onnx")
    with maker.open(maker.compile(path, SMALL), SMALL) as session:
        assert maker.device.name in session.device
        for size in [*SIZES, *reversed(SIZES)]:
            feeds = {"images": random_array(*size)}
            found = session.run(feeds)["scores"]
            expected = run_baseline(path, feeds)["scores"]
            np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
        with pytest.raises(FeedError, match="takes 1 to 2"):
            session.run({"images": random_array(3, 3, 16, 16)})


def test_fp16_inputs_and_outputs(maker: EngineMaker) -> None:
    weight = constant("w", random_array(8, 8), np.float16)
    inputs, outputs = [value("x", (4, 8), FLOAT16)], [value("y", (4, 8), FLOAT16)]
    path = save(
        model([op("MatMul", "x w", "y")], inputs, outputs, [weight]), maker.folder / "m.onnx"
    )
    feeds = {"x": random_array(4, 8).astype(np.float16)}
    with maker.open(maker.compile(path, recipe="fp16", low_dtype="float16")) as session:
        found = session.run(feeds)["y"]
    np.testing.assert_allclose(found, run_baseline(path, feeds)["y"], rtol=2e-2, atol=2e-2)


def test_several_optimization_profiles(maker: EngineMaker) -> None:
    path = save_convnet(maker.folder / "net.onnx")
    with maker.open(maker.compile(path, SMALL, LARGE), SMALL, LARGE) as session:
        assert len(session.optimization_profiles) == 2
        for batch in (1, 8, 2, 3):
            feeds = {"images": random_array(batch, 3, 32, 32)}
            expected = run_baseline(path, feeds)["scores"]
            np.testing.assert_allclose(session.run(feeds)["scores"], expected, rtol=1e-3, atol=1e-4)


def test_a_cuda_graph_computes_the_same(maker: EngineMaker) -> None:
    path = save_convnet(maker.folder / "net.onnx")
    plan = maker.compile(path, SMALL)
    with maker.open(plan) as plain, maker.open(plan, cuda_graph=True) as replayed:
        for seed in range(4):
            for size in SIZES[:2]:
                feeds = {"images": random_array(*size, seed=seed)}
                for _ in range(2):
                    np.testing.assert_array_equal(
                        replayed.run(feeds)["scores"], plain.run(feeds)["scores"]
                    )


def test_an_output_that_the_data_sizes(maker: EngineMaker) -> None:
    if maker.module == "tensorrt_rtx":
        pytest.skip("TensorRT-RTX 1.7.1 compiles neither NonZero nor NonMaxSuppression")
    nodes, outputs = [op("NonZero", "x", "y")], [value("y", (2, "n"), INT64)]
    path = save(model(nodes, [value("x", (4, 5))], outputs), maker.folder / "m.onnx")
    with maker.open(maker.compile(path)) as session:
        for seed in range(3):
            x = random_array(4, 5, seed=seed) * (random_array(4, 5, seed=seed + 9) > 0)
            assert np.array_equal(session.run({"x": x})["y"], np.array(np.nonzero(x)))
        assert session.run({"x": np.zeros((4, 5), np.float32)})["y"].shape == (2, 0)


def test_values_of_a_shape_tensor(maker: EngineMaker) -> None:
    nodes = [op("Expand", "x size", "y")]
    inputs = [value("x", (1, 4)), value("size", (2,), INT64)]
    path = save(model(nodes, inputs, [value("y", ("a", "b"), FLOAT)]), maker.folder / "m.onnx")
    profile = OptimizationProfile(
        "default",
        {"x": ShapeRange((1, 4), (1, 4), (1, 4)), "size": ShapeRange((2,), (2,), (2,))},
        {"size": ValueRange((1, 4), (2, 4), (5, 4))},
    )
    x = random_array(1, 4)
    with maker.open(maker.compile(path, profile), profile) as session:
        dtype = {"int64": np.int64, "int32": np.int32}[session.inputs[1].dtype.label]
        for rows in (1, 5, 3):
            found = session.run({"x": x, "size": np.array([rows, 4], dtype)})["y"]
            assert np.array_equal(found, np.broadcast_to(x, (rows, 4)))
        with pytest.raises(FeedError, match="value 0 of 'size' is 6"):
            session.run({"x": x, "size": np.array([6, 4], dtype)})


class GpuArray:
    """An array on the GPU, described by the CUDA Array Interface."""

    def __init__(self, maker: EngineMaker, array: np.ndarray[Any, Any]) -> None:
        memory = maker.memory
        with memory.current():
            stream, address = memory.create_stream(), memory.allocate(array.nbytes)
            memory.copy_to_device(address, array, stream)
            memory.synchronize(stream)
            memory.destroy_stream(stream)
        self.__cuda_array_interface__ = {
            "shape": array.shape, "typestr": array.dtype.str, "data": (address, False),
            "version": 3, "stream": 1,
        }  # fmt: skip


def test_an_array_on_the_gpu_is_read_where_it_is(maker: EngineMaker) -> None:
    path = save_convnet(maker.folder / "net.onnx")
    images = random_array(2, 3, 16, 16)
    with maker.open(maker.compile(path, SMALL)) as session:
        expected = session.run({"images": images})["scores"]
        found = session.run({"images": GpuArray(maker, images)})["scores"]
    np.testing.assert_array_equal(found, expected)


def test_threads_share_a_session(maker: EngineMaker) -> None:
    path = save_convnet(maker.folder / "net.onnx")
    session = maker.open(maker.compile(path, SMALL))
    images = [random_array(*SIZES[seed % 2], seed=seed) for seed in range(4)]
    expected = [session.run({"images": array})["scores"] for array in images]
    wrong: list[int] = []

    def work(seed: int) -> None:
        runs = (session.run({"images": images[seed]})["scores"] for _ in range(50))
        wrong.extend(seed for scores in runs if not np.array_equal(scores, expected[seed]))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    session.close()
    assert wrong == []


def test_rtx_keeps_its_kernels(maker: EngineMaker) -> None:
    if maker.module != "tensorrt_rtx":
        pytest.skip("only TensorRT-RTX compiles kernels at load")
    path, cache = save_convnet(maker.folder / "net.onnx"), maker.folder / "kernels.cache"
    plan, feeds = maker.compile(path, SMALL), {"images": random_array(*SIZES[0])}
    runs = []
    for _ in range(2):
        with maker.open(plan, runtime_cache=cache) as session:
            runs.append(session.run(feeds)["scores"])
        assert cache.stat().st_size > 0
    np.testing.assert_array_equal(*runs)


def save_profile(maker: EngineMaker) -> Path:
    """Write a deploy profile for the very GPU of this machine."""
    device = {
        "title": maker.device.name,
        "kind": "datacenter",
        "compute_capability": maker.device.compute_capability,
    }
    (maker.folder / "device.yaml").write_text(yaml.safe_dump(device))
    profile = {
        "title": "this machine",
        "device": "./device.yaml",
        "backend": maker.module,
        "recipe": "fp16",
        "shapes": {"inputs": {"images": {"min": [1, 3, 16, 16], "opt": [2, 3, 16, 16],
                                         "max": [4, 3, 32, 32]}}},
    }  # fmt: skip
    path = maker.folder / "here.yaml"
    path.write_text(yaml.safe_dump(profile))
    return path


def test_build_load_run(maker: EngineMaker) -> None:
    path = save_convnet(maker.folder / "net.onnx")
    profile = save_profile(maker)
    folder = trtdeploy.build(path, str(profile), output_dir=maker.folder / "out").folder
    feeds = {"images": random_array(2, 3, 16, 16)}
    with trtdeploy.load(folder, options=SessionOptions(cuda_graph=True)) as session:
        assert session.inputs[0].shape == ("batch", 3, "height", "width")
        found = [session.run(feeds)["scores"] for _ in range(3)]
    expected = run_baseline(path, feeds)["scores"]
    for scores in found:
        np.testing.assert_allclose(scores, expected, rtol=5e-2, atol=5e-2)


def test_memory_of_each_package(open_memory: Opener) -> None:
    memory = open_memory(0)
    sent = random_array(1000)
    with memory.current():
        stream, address = memory.create_stream(), memory.allocate(sent.nbytes)
        pinned = memory.allocate_pinned(sent.nbytes)
        memory.copy_to_device(address, sent, stream)
        memory.copy_to_host(pinned, address, stream)
        memory.wait_for(stream, 1)
        memory.synchronize(stream)
        assert np.array_equal(pinned.view(np.float32), sent)
        memory.free_pinned(pinned)
        memory.free(address)
        memory.destroy_stream(stream)
    major, _, minor = memory.device.compute_capability.partition(".")
    assert major.isdigit()
    assert minor.isdigit()
    assert memory.device.name
