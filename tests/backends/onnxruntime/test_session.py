"""Sessions over the real ONNX Runtime."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from tests.builders import FLOAT16, INT64, model, op, random_array, save, value
from tests.building.models import save_convnet
from trtdeploy.backends.onnxruntime.session import OnnxRuntimeSession
from trtdeploy.backends.session import Session
from trtdeploy.core.dtypes import DType
from trtdeploy.core.errors import (
    CompileError,
    ExecutionError,
    FeedError,
    NotPossibleError,
    UsageError,
)


@pytest.fixture
def convnet(tmp_path: Path) -> Path:
    return save_convnet(tmp_path / "net.onnx")


def make_identity(dtype: int, path: Path) -> Path:
    proto = model([op("Identity", "x", "y")], [value("x", ("n", 2), dtype)],
                  [value("y", ("n", 2), dtype)], opset=21)  # fmt: skip
    return save(proto, path)


def test_it_runs_and_describes_the_model(convnet: Path) -> None:
    with OnnxRuntimeSession(convnet) as session:
        assert isinstance(session, Session)
        assert session.inputs[0].shape == ("batch", 3, 64, 64)
        assert session.outputs[0].dtype is DType.FLOAT32
        assert session.device.startswith("CPU, ONNX Runtime 1.")
        found = session.run({"images": random_array(2, 3, 64, 64)})
        assert found["scores"].shape == (2, 5)


def test_runs_are_repeatable_bit_for_bit(convnet: Path) -> None:
    images = random_array(4, 3, 64, 64)
    runs = []
    for _ in range(3):
        with OnnxRuntimeSession(convnet) as session:
            runs += [session.run({"images": images})["scores"] for _ in range(2)]
    assert all(np.array_equal(run, runs[0]) for run in runs)


def test_threads_run_at_the_same_time(convnet: Path) -> None:
    session = OnnxRuntimeSession(convnet, threads=1)
    images = [random_array(1, 3, 64, 64, seed=seed) for seed in range(4)]
    expected = [session.run({"images": array})["scores"] for array in images]
    wrong = []

    def work(seed: int) -> None:
        runs = (session.run({"images": images[seed]})["scores"] for _ in range(50))
        wrong.extend(seed for scores in runs if not np.array_equal(scores, expected[seed]))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []


@pytest.mark.parametrize("optimize", [True, False])
def test_optimisations_may_be_off(optimize: bool, convnet: Path) -> None:
    images = random_array(1, 3, 64, 64)
    found = OnnxRuntimeSession(convnet, optimize=optimize).run({"images": images})["scores"]
    expected = OnnxRuntimeSession(convnet).run({"images": images})["scores"]
    # beside the largest score: how a processor orders its sums decides the rest
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("feeds", "said"),
    [
        ({}, "'images' .*is missing"),
        ({"image": random_array(1, 3, 64, 64)}, "Did you mean 'images'"),
        ({"images": np.zeros((1, 3, 64, 64))}, "must be float32, not float64"),
        ({"images": random_array(3, 64, 64)}, "must have rank 4"),
        ({"images": random_array(1, 1, 64, 64)}, "must have 3 on axis 1"),
    ],
)
def test_feeds_that_do_not_fit(feeds: dict[str, Any], said: str, convnet: Path) -> None:
    with pytest.raises(FeedError, match=said):
        OnnxRuntimeSession(convnet).run(feeds)


def test_a_closed_session_runs_nothing(convnet: Path) -> None:
    with OnnxRuntimeSession(convnet) as session:
        pass
    session.close()
    with pytest.raises(UsageError, match="closed"):
        session.run({"images": random_array(1, 3, 64, 64)})


@pytest.mark.parametrize(
    ("dtype", "array"),
    [
        (TensorProto.FLOAT16, np.array([[1, 65504]], np.float16)),
        (TensorProto.BFLOAT16, np.array([[1, 3e38]], ml_dtypes.bfloat16)),
        (TensorProto.FLOAT8E4M3FN, np.array([[1, 448]], ml_dtypes.float8_e4m3fn)),
        (TensorProto.FLOAT8E5M2, np.array([[1, 57344]], ml_dtypes.float8_e5m2)),
        (TensorProto.INT64, np.array([[1, -(2**62)]])),
        (TensorProto.BOOL, np.array([[True, False]])),
        (TensorProto.UINT8, np.array([[0, 255]], np.uint8)),
        (TensorProto.STRING, np.array([["a", "ß"]], object)),
        (TensorProto.DOUBLE, np.array([[1, 1e300]])),
    ],
)
def test_every_type_comes_back_as_it_went_in(dtype: int, array: Any, tmp_path: Path) -> None:
    with OnnxRuntimeSession(make_identity(dtype, tmp_path / "m.onnx")) as session:
        assert session.inputs[0].dtype.code == dtype
        found = session.run({"x": array})["y"]
        assert found.dtype == array.dtype
        assert found.tolist() == array.tolist()
        empty = session.run({"x": array[:0]})["y"]
        assert (empty.shape, empty.dtype) == ((0, 2), array.dtype)


def test_bf16_among_other_types(tmp_path: Path) -> None:
    """A graph with narrow outputs and wide ones; numpy arrays that are not contiguous."""
    nodes = [op("Cast", "x", "low", to=TensorProto.BFLOAT16), op("Neg", "x", "wide")]
    outputs = [value("low", ("n", 2), TensorProto.BFLOAT16), value("wide", ("n", 2))]
    path = save(model(nodes, [value("x", ("n", 2))], outputs), tmp_path / "m.onnx")
    x = random_array(2, 3).T
    found = OnnxRuntimeSession(path).run({"x": x})
    assert np.array_equal(found["low"], x.astype(ml_dtypes.bfloat16))
    assert np.array_equal(found["wide"], -x)


def test_a_scalar_and_an_unknown_rank(tmp_path: Path) -> None:
    inputs = [value("x", None), value("s", ())]
    path = save(model([op("Mul", "x s", "y")], inputs, [value("y", None)]), tmp_path / "m.onnx")
    session = OnnxRuntimeSession(path)
    assert [spec.shape for spec in session.inputs] == [None, ()]
    x = random_array(2, 3)
    assert np.array_equal(session.run({"x": x, "s": np.asarray(2, np.float32)})["y"], x * 2)
    with pytest.raises(FeedError, match=r"'s' must have rank 0 \(scalar\), not 1 \(3\)"):
        session.run({"x": x, "s": np.ones(3, np.float32)})


def test_sizes_that_do_not_fit_together(tmp_path: Path) -> None:
    inputs = [value("a", ("n",)), value("b", ("m",))]
    path = save(model([op("Add", "a b", "y")], inputs, [value("y", ("k",))]), tmp_path / "m.onnx")
    with pytest.raises(ExecutionError, match="failed while it ran the model") as info:
        OnnxRuntimeSession(path).run({"a": random_array(2), "b": random_array(3)})
    assert info.value.exit_code == 6


def make_sequence_model() -> ModelProto:
    proto = model([op("SplitToSequence", "x", "s", axis=0)], [value("x", (2, 4))], [])
    proto.graph.output.append(helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None))
    return proto


def test_outputs_that_are_no_tensors(tmp_path: Path) -> None:
    path = save(make_sequence_model(), tmp_path / "m.onnx")
    with pytest.raises(NotPossibleError, match=r"'s' is seq\(tensor\(float\)\)"):
        OnnxRuntimeSession(path)


def test_a_model_that_onnx_runtime_refuses(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(b"garbage")
    with pytest.raises(CompileError, match=r"refuses m\.onnx"):
        OnnxRuntimeSession(path)


def test_a_typed_model_keeps_its_types(tmp_path: Path) -> None:
    weight = numpy_helper.from_array(np.ones((4, 4), np.float16), "w")
    nodes = [op("MatMul", "x w", "y"), op("Shape", "y", "n")]
    outputs = [value("y", ("N", 4), FLOAT16), value("n", (2,), INT64)]
    path = save(
        model(nodes, [value("x", ("N", 4), FLOAT16)], outputs, [weight]), tmp_path / "m.onnx"
    )
    found = OnnxRuntimeSession(path).run({"x": np.ones((3, 4), np.float16)})
    assert (found["y"].dtype, found["n"].tolist()) == (np.float16, [3, 4])
