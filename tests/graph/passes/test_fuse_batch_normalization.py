from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, NodeProto, TensorProto

from tests.builders import (
    constant,
    count_ops,
    loaded,
    model,
    normalized,
    op,
    random_array,
    value,
)
from trtdeploy.graph.normalization import normalize_model
from trtdeploy.graph.passes.fuse_batch_normalization import FuseBatchNormalizationPass
from trtdeploy.graph.saving import save_model

IMAGE = ("N", "C", "H", "W")


def bn_constants(channels: int, prefix: str = "") -> list[TensorProto]:
    rng = np.random.default_rng(channels)
    return [
        constant(f"{prefix}g", rng.uniform(0.5, 1.5, channels)),
        constant(f"{prefix}be", rng.normal(0, 0.5, channels)),
        constant(f"{prefix}mu", rng.normal(0, 0.5, channels)),
        constant(f"{prefix}va", rng.uniform(0.1, 2, channels)),
    ]


def bn(source: str, target: str, prefix: str = "", **attributes: Any) -> NodeProto:
    parameters = " ".join(prefix + name for name in ("g", "be", "mu", "va"))
    return op("BatchNormalization", f"{source} {parameters}", target, **attributes)


def run(proto: ModelProto, shape: tuple[int, ...]) -> list[np.ndarray[Any, Any]]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
    return session.run(None, {"x": random_array(*shape, seed=9)})


def check_fused(proto: ModelProto, shape: tuple[int, ...], left: list[str]) -> onnx.ModelProto:
    """Fuse, compare the results, and compare the operators that are left."""
    found = normalized(proto)
    FuseBatchNormalizationPass()(found)
    onnx.checker.check_model(found.proto, full_check=True)
    assert [node.op_type for node in found.graph.node] == left
    for before, after in zip(run(proto, shape), run(found.proto, shape), strict=True):
        scale = np.abs(before).max()
        assert np.abs(before - after).max() < 2e-6 * scale
    return found.proto


CONVOLUTIONS = {
    "conv": ("Conv", (8, 6, 3, 3), {}),
    "grouped": ("Conv", (9, 2, 3, 3), {"group": 3}),
    "depthwise": ("Conv", (6, 1, 3, 3), {"group": 6}),
    "transposed": ("ConvTranspose", (6, 8, 2, 2), {"strides": [2, 2]}),
    "transposed_grouped": ("ConvTranspose", (6, 4, 2, 2), {"group": 2}),
    "transposed_depthwise": ("ConvTranspose", (6, 1, 3, 3), {"group": 6}),
}


@pytest.mark.parametrize("biased", [False, True], ids=["no_bias", "bias"])
@pytest.mark.parametrize("case", CONVOLUTIONS.values(), ids=CONVOLUTIONS)
def test_convolutions(case: tuple[str, tuple[int, ...], dict[str, Any]], biased: bool) -> None:
    op_type, dims, attributes = case
    transposed = op_type == "ConvTranspose"
    outputs = dims[1] * attributes.get("group", 1) if transposed else dims[0]
    bias = [constant("b", random_array(outputs, seed=2))] if biased else []
    proto = model(
        [op(op_type, "x w b" if biased else "x w", "c", **attributes), bn("c", "y")],
        [value("x", ("N", 6, 8, 8))],
        [value("y", IMAGE)],
        [constant("w", random_array(*dims, seed=1)), *bias, *bn_constants(outputs)],
    )
    fused = check_fused(proto, (2, 6, 8, 8), [op_type])
    assert fused.graph.node[0].name == "c"
    assert {tensor.name for tensor in fused.graph.initializer} == {
        "w_folded",
        "b_folded" if biased else "c_bias",
    }


@pytest.mark.parametrize("bias_dims", [None, (5,), (1, 5), (1,), ()], ids=str)
@pytest.mark.parametrize("attributes", [{}, {"transB": 1, "alpha": 0.5, "beta": 3.0}], ids=str)
def test_gemm(bias_dims: tuple[int, ...] | None, attributes: dict[str, Any]) -> None:
    dims = (5, 4) if attributes else (4, 5)
    bias = [] if bias_dims is None else [constant("b", random_array(*bias_dims, seed=2))]
    proto = model(
        [op("Gemm", "x w b" if bias else "x w", "c", **attributes), bn("c", "y")],
        [value("x", ("N", 4))],
        [value("y", ("N", 5))],
        [constant("w", random_array(*dims, seed=1)), *bias, *bn_constants(5)],
    )
    check_fused(proto, (3, 4), ["Gemm"])


@pytest.mark.parametrize("added", ["", "c b", "b c"])
def test_products_of_matrices(added: str) -> None:
    nodes = [op("MatMul", "x w", "c")]
    nodes += [op("Add", added, "d")] if added else []
    proto = model(
        [*nodes, bn("d" if added else "c", "y")],
        [value("x", ("N", 4))],
        [value("y", ("N", 5))],
        [
            constant("w", random_array(4, 5, seed=1)),
            *([constant("b", random_array(5, seed=2))] if added else []),
            *bn_constants(5),
        ],
    )
    check_fused(proto, (3, 4), ["MatMul", "Add"])


def test_the_channels_of_a_batch_of_products_are_not_its_columns() -> None:
    proto = model(
        [op("MatMul", "x w", "c"), bn("c", "y")],
        [value("x", ("N", 4, 4))],
        [value("y", ("N", 4, 4))],
        [constant("w", random_array(4, 4, seed=1)), *bn_constants(4)],
    )
    check_fused(proto, (2, 4, 4), ["MatMul", "BatchNormalization"])


def test_normalisations_in_a_row() -> None:
    proto = model(
        [op("Conv", "x w", "c"), bn("c", "d"), bn("d", "e", "2"), op("Relu", "e", "y")],
        [value("x", ("N", 3, 8, 8))],
        [value("y", IMAGE)],
        [constant("w", random_array(8, 3, 3, 3)), *bn_constants(8), *bn_constants(8, "2")],
    )
    found = normalized(proto)
    FuseBatchNormalizationPass()(found)
    assert found.changes == ["2 BatchNormalization nodes folded into the layers before"]
    check_fused(proto, (2, 3, 8, 8), ["Conv", "Relu"])


def test_layers_that_share_a_weight_each_get_their_own() -> None:
    proto = model(
        [
            op("Conv", "x w", "c"),
            bn("c", "y"),
            op("Conv", "x w", "d", strides=[2, 2]),
            bn("d", "z", "2"),
            op("Conv", "x w", "v", strides=[3, 3]),
        ],
        [value("x", ("N", 3, 8, 8))],
        [value("y", IMAGE), value("z", IMAGE), value("v", IMAGE)],
        [constant("w", random_array(8, 3, 3, 3)), *bn_constants(8), *bn_constants(8, "2")],
    )
    fused = check_fused(proto, (2, 3, 8, 8), ["Conv"] * 3)
    weights = [node.input[1] for node in fused.graph.node]
    assert weights == ["w_folded", "w_folded_2", "w"]


W, CONV = constant("w", random_array(8, 3, 3, 3)), op("Conv", "x w", "c")
ZERO_VARIANCE = [*bn_constants(8)[:3], constant("va", -np.ones(8))]
LEFT_ALONE = {
    "another_reader": ([CONV, bn("c", "y"), op("Relu", "c", "z")], bn_constants(8), ["y", "z"]),
    "a_result": ([CONV, bn("c", "y")], bn_constants(8), ["y", "c"]),
    "something_between": ([CONV, op("Relu", "c", "r"), bn("r", "y")], bn_constants(8), ["y"]),
    "no_layer": ([bn("x", "y")], bn_constants(3), ["y"]),
    "computed_weight": (
        [op("Relu", "w", "v"), op("Conv", "x v", "c"), bn("c", "y")],
        bn_constants(8),
        ["y"],
    ),
    "computed_bias": (
        [op("Relu", "be", "b"), op("Conv", "x w b", "c"), bn("c", "y")],
        bn_constants(8),
        ["y"],
    ),
    "computed_scale": (
        [CONV, op("Relu", "g0", "g"), bn("c", "y")],
        [constant("g0", np.ones(8)), *bn_constants(8)[1:]],
        ["y"],
    ),
    "negative_variance": ([CONV, bn("c", "y")], ZERO_VARIANCE, ["y"]),
    "training": (
        [CONV, op("BatchNormalization", "c g be mu va", "y m v", "n", training_mode=1)],
        bn_constants(8),
        ["y"],
    ),
}


@pytest.mark.parametrize("case", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_left_alone(case: tuple[list[NodeProto], list[TensorProto], list[str]]) -> None:
    nodes, constants, results = case
    outputs = [value(name, IMAGE) for name in results]
    found = normalized(model(nodes, [value("x", ("N", 3, 8, 8))], outputs, [W, *constants]))
    before = found.proto.SerializeToString(deterministic=True)
    FuseBatchNormalizationPass()(found)
    assert found.proto.SerializeToString(deterministic=True) == before
    assert not found.changes


def test_large_weights_stay_on_the_disk(tmp_path: Path) -> None:
    proto = model(
        [op("ConvTranspose", "x w", "c", group=2), bn("c", "y")],
        [value("x", ("N", 32, 4, 4))],
        [value("y", IMAGE)],
        [constant("w", random_array(32, 16, 3, 3)), *bn_constants(32)],
    )
    found = normalize_model(loaded(proto, tmp_path))
    FuseBatchNormalizationPass()(found)
    assert list(found.weights) == ["w_folded"]
    save_model(found, tmp_path / "out.onnx")
    saved = onnx.load(tmp_path / "out.onnx")
    assert count_ops(saved, "BatchNormalization") == 0
    before, after = (run(m, (2, 32, 4, 4))[0] for m in (proto, saved))
    assert np.abs(before - after).max() < 2e-6 * np.abs(before).max()
