"""FoldIntegerBiasPass: same bits as ONNX Runtime, and what it leaves alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from onnx import ModelProto, TensorProto, checker, numpy_helper

from tests.builders import (
    FLOAT,
    FLOAT16,
    INT32,
    branch_model,
    constant,
    count_ops,
    in_memory,
    loaded,
    model,
    op,
    random_array,
    value,
)
from trtdeploy.graph.model import OnnxModel
from trtdeploy.graph.passes.fold_integer_bias import FoldIntegerBiasPass
from trtdeploy.graph.saving import save_model

RNG = np.random.default_rng(3)
BIAS = RNG.integers(-(2**31), 2**31, 64)
SCALES = RNG.uniform(1e-6, 1e-2, 64)


def biased(scale: Any, dtype: int = FLOAT, *, opset: int = 17, **axis: int) -> ModelProto:
    """Make ``y = Add(x, DequantizeLinear(int32 bias))`` of 64 channels."""
    kind = np.float16 if dtype == FLOAT16 else np.float32
    constants = [constant("bq", BIAS, np.int32), constant("s", scale, kind)]
    nodes = [op("DequantizeLinear", "bq s", "b", "b_dq", **axis), op("Add", "x b", "y", "add")]
    inputs, outputs = [value("x", ("N", 64), dtype)], [value("y", ("N", 64), dtype)]
    return model(nodes, inputs, outputs, constants, opset=opset)


def run(proto: ModelProto, feeds: dict[str, Any]) -> Any:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, feeds)[0]


def fold(proto: ModelProto) -> OnnxModel:
    made = in_memory(proto).copy()
    FoldIntegerBiasPass()(made)
    checker.check_model(made.proto, full_check=True)
    return made


@pytest.mark.parametrize(
    ("proto", "dtype"),
    [
        (biased(SCALES, axis=0), np.float32),
        (biased(SCALES, axis=-1), np.float32),
        (biased(0.003), np.float32),
        (biased([0.003]), np.float32),
        (biased(0.003, opset=10), np.float32),
        (biased(SCALES * 1e-6, FLOAT16, opset=19, axis=0), np.float16),
    ],
)
def test_results_keep_every_bit(proto: ModelProto, dtype: Any) -> None:
    feeds = {"x": np.zeros((2, 64), dtype)}
    folded = fold(proto)
    assert count_ops(folded.proto, "DequantizeLinear") == 0
    assert {t.name for t in folded.graph.initializer} == {"b"}
    assert run(folded.proto, feeds).tobytes() == run(proto, feeds).tobytes()
    (change,) = folded.changes
    assert change == (
        "folded 1 constant behind DequantizeLinear ('b_dq') to floating point, bit for bit"
    )


def test_bias_in_the_file_and_case_o10(tmp_path: Any) -> None:
    # case o10: per-channel int32 bias of a convolution; here large enough to stay on the disk
    channels = 2000
    weight, scales = random_array(channels, 1, 1, 1), np.abs(random_array(channels, seed=1))
    numbers = RNG.integers(-5000, 5000, channels)
    nodes = [
        op("DequantizeLinear", "bq s z", "b", "b_dq", axis=0),
        op("Conv", "x w b", "c", "conv"),
        op("Relu", "c", "y", "relu"),
    ]
    constants = [
        constant("w", weight), constant("bq", numbers, np.int32), constant("s", scales),
        constant("z", np.zeros(channels), np.int32),
    ]  # fmt: skip
    proto = model(nodes, [value("x", (1, 1, 2, 2))], [value("y", (1, channels, 2, 2))], constants)
    made = loaded(proto, tmp_path)
    assert "bq" in made.weights
    FoldIntegerBiasPass()(made)
    save_model(made, tmp_path / "folded.onnx")
    assert set(made.weights) == {"w"}
    feeds = {"x": random_array(1, 1, 2, 2)}
    folded = ModelProto()
    folded.ParseFromString((tmp_path / "folded.onnx").read_bytes())
    assert run(folded, feeds).tobytes() == run(proto, feeds).tobytes()


@pytest.mark.parametrize("dtype", [TensorProto.INT8, TensorProto.FLOAT8E4M3FN])
def test_constants_without_axes(dtype: int) -> None:
    kept = numpy_helper.from_array(np.ones((1, 4), np.int8), "kept")
    one = TensorProto(name="one", data_type=dtype, raw_data=b"\x39")
    nodes = [
        op("DequantizeLinear", "one s", "o", "o_dq"),
        op("DequantizeLinear", "kept s", "k", "k_dq"),
        op("Add", "x o", "a", "add1"),
        op("Add", "a k", "y", "add2"),
    ]
    constants = [one, kept, constant("s", 0.1)]
    proto = model(nodes, [value("x")], [value("y")], constants, opset=19)
    folded = fold(proto)
    assert [n.name for n in folded.graph.node if n.op_type == "DequantizeLinear"] == ["k_dq"]
    feeds = {"x": random_array(2, 4)}
    assert run(folded.proto, feeds).tobytes() == run(proto, feeds).tobytes()


def test_bodies_are_folded_too() -> None:
    then = [op("DequantizeLinear", "bq s", "b", "b_dq"), op("Add", "x b", "t", "add")]
    constants = [constant("bq", [1, 2, 3, 4], np.int32), constant("s", 0.5)]
    proto = branch_model(then, [op("Neg", "x", "e", "neg")], constants=constants)
    folded = fold(proto)
    assert count_ops(folded.proto, "DequantizeLinear") == 0
    feeds = {"x": random_array(2, 4), "flag": np.array(True)}
    assert run(folded.proto, feeds).tobytes() == run(proto, feeds).tobytes()


@pytest.mark.parametrize(
    ("operands", "inputs", "constants"),
    [
        ("bq s", [value("bq", (4,), INT32)], [constant("s", 0.1)]),
        ("bq s", [value("s", ())], [constant("bq", [1, 2, 3, 4], np.int32)]),
        (
            "bq s z",
            [],
            [constant("bq", [1, 2, 3, 4], np.int32), constant("s", 0.1),
             constant("z", 3, np.int32)],
        ),
        ("bq s", [], [constant("bq", [1, 2, 3, 4], np.int32), constant("s", [0.1, 0.2])]),
        ("bq s", [], [constant("bq", [1, 2, 3, 4], np.int8), constant("s", 0.1)]),
    ],
)  # fmt: skip
def test_everything_else_stays(operands: str, inputs: list[Any], constants: list[Any]) -> None:
    nodes = [op("DequantizeLinear", operands, "b", "b_dq"), op("Add", "x b", "y", "add")]
    proto = model(nodes, [value("x"), *inputs], [value("y")], constants)
    made = in_memory(proto).copy()
    FoldIntegerBiasPass()(made)
    assert made.proto == proto
    assert made.changes == []


def test_a_result_of_the_model_stays() -> None:
    nodes = [op("DequantizeLinear", "bq s", "y", "b_dq")]
    constants = [constant("bq", [1, 2, 3, 4], np.int32), constant("s", 0.1)]
    made = in_memory(model(nodes, [], [value("y", (4,))], constants))
    FoldIntegerBiasPass()(made)
    assert count_ops(made.proto, "DequantizeLinear") == 1
