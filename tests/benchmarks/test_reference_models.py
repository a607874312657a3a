from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from benchmarks.big_model import write_big_model
from benchmarks.resnet import build_resnet50
from benchmarks.yolo import build_yolov8n


def build_small_resnet() -> onnx.ModelProto:
    return build_resnet50(width=4, classes=10)


def build_small_yolo() -> onnx.ModelProto:
    return build_yolov8n(base=4, image=64)


SMALL = {"resnet50": build_small_resnet, "yolov8n": build_small_yolo}


@pytest.mark.parametrize("build", SMALL.values(), ids=SMALL)
def test_model_is_valid_and_runs(build: Callable[[], onnx.ModelProto]) -> None:
    model = build()
    onnx.checker.check_model(model, full_check=True)
    session = ort.InferenceSession(model.SerializeToString())
    source = session.get_inputs()[0].name
    values = np.random.default_rng(0).standard_normal((2, 3, 64, 64), dtype=np.float32)
    (found,) = session.run(None, {source: values})
    assert found.shape == {"output": (2, 10), "output0": (2, 84, 84)}[session.get_outputs()[0].name]
    assert 1e-3 < np.abs(found).max() < 1e4


@pytest.mark.parametrize("build", SMALL.values(), ids=SMALL)
def test_model_is_the_same_every_time(build: Callable[[], onnx.ModelProto]) -> None:
    assert build().SerializeToString() == build().SerializeToString()


def test_topologies_are_the_real_ones() -> None:
    resnet = Counter(node.op_type for node in build_small_resnet().graph.node)
    assert (resnet["Conv"], resnet["Relu"], resnet["Add"], resnet["Gemm"]) == (53, 49, 16, 1)
    yolo = Counter(node.op_type for node in build_small_yolo().graph.node)
    assert (yolo["Conv"], yolo["Sigmoid"], yolo["MaxPool"], yolo["Resize"]) == (64, 58, 3, 2)


def test_full_sizes_are_the_real_ones() -> None:
    assert build_yolov8n().ByteSize() == pytest.approx(12.7e6, rel=0.01)


def test_big_model_is_external_and_sparse(tmp_path: Path) -> None:
    path = tmp_path / "big.onnx"
    total = write_big_model(path, matrices=3, side=1024)
    data = tmp_path / "big.onnx.data"
    assert data.stat().st_size == total == 3 * 1024 * 1024 * 4
    assert data.stat().st_blocks * 512 < total / 4
    assert path.stat().st_size < 10_000
    onnx.checker.check_model(path, full_check=True)
    session = ort.InferenceSession(path)
    (found,) = session.run(None, {"x": np.ones((1, 1024), np.float32)})
    np.testing.assert_allclose(np.unique(found), [0.0, 0.125])
