from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, NodeProto

from tests.builders import constant, model, normalized, op, random_array, value
from trtdeploy.graph.passes.fold_bias_adds import FoldBiasAddsPass
from trtdeploy.graph.passes.fuse_batch_normalization import FuseBatchNormalizationPass

WEIGHTS = {
    "Conv": constant("w", random_array(8, 4, 3, 3)),
    "ConvTranspose": constant("w", random_array(4, 8, 3, 3)),
}


def run(proto: ModelProto) -> np.ndarray[Any, Any]:
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    return session.run(None, {"x": random_array(2, 4, 6, 6, seed=9)})[0]


def convolution(
    nodes: list[NodeProto], *dims: tuple[int, ...], op_type: str = "Conv"
) -> ModelProto:
    """Make a model of ``nodes``, whose constants are ``w`` and ``b0``, ``b1``... of ``dims``."""
    constants = [constant(f"b{i}", random_array(*d, seed=i + 1)) for i, d in enumerate(dims)]
    return model(
        nodes,
        [value("x", ("N", 4, 6, 6))],
        [value("y", ("N", "C", "H", "W"))],
        [WEIGHTS[op_type], *constants],
    )


def check(proto: ModelProto, left: list[str]) -> ModelProto:
    found = normalized(proto)
    FoldBiasAddsPass()(found)
    onnx.checker.check_model(found.proto, full_check=True)
    assert [node.op_type for node in found.graph.node] == left
    assert np.allclose(run(proto), run(found.proto), rtol=1e-6, atol=1e-5)
    return found.proto


@pytest.mark.parametrize("op_type", WEIGHTS)
@pytest.mark.parametrize("dims", [(1, 8, 1, 1), (8, 1, 1), (1,), (), (1, 1, 1, 1)], ids=str)
@pytest.mark.parametrize("order", ["c b0", "b0 c"])
def test_an_added_constant_becomes_the_bias(
    op_type: str, dims: tuple[int, ...], order: str
) -> None:
    nodes = [op(op_type, "x w", "c"), op("Add", order, "y")]
    folded = check(convolution(nodes, dims, op_type=op_type), [op_type])
    (node,) = folded.graph.node
    assert (node.name, list(node.input)) == ("c", ["x", "w", "c_bias"])
    assert {t.name: list(t.dims) for t in folded.graph.initializer}["c_bias"] == [8]


def test_it_is_added_to_a_bias_that_is_there() -> None:
    nodes = [op("Conv", "x w b0", "c"), op("Add", "c b1", "d"), op("Add", "d b2", "y")]
    proto = convolution(nodes, (8,), (8, 1, 1), (1, 8, 1, 1))
    check(proto, ["Conv"])
    found = normalized(proto)
    FoldBiasAddsPass()(found)
    assert found.changes == ["2 constants added to convolutions became part of their bias"]


@pytest.mark.parametrize(
    "dims", [(4,), (1, 4), (8, 4, 4), (1, 8, 4, 1), (2, 8, 1, 1), (1, 1, 8, 1, 1)], ids=str
)
def test_what_is_no_bias_stays(dims: tuple[int, ...]) -> None:
    found = normalized(convolution([op("Conv", "x w", "c"), op("Add", "c b0", "y")], dims))
    FoldBiasAddsPass()(found)
    assert [node.op_type for node in found.graph.node] == ["Conv", "Add"]


@pytest.mark.parametrize(
    "nodes",
    [
        [op("Conv", "x w", "c"), op("Add", "c b0", "d"), op("Mul", "d c", "y")],
        [op("Conv", "x w", "c"), op("Add", "c c", "y")],
        [op("Relu", "w", "v"), op("Conv", "x v", "c"), op("Add", "c b0", "y")],
        [op("Conv", "x w", "c"), op("Relu", "b0", "r"), op("Add", "c r", "y")],
        [op("Relu", "x", "c"), op("Add", "c b1", "y")],
    ],
    ids=["another_reader", "itself", "computed_weight", "computed_bias", "no_layer"],
)
def test_left_alone(nodes: list[NodeProto]) -> None:
    check(convolution(nodes, (8, 1, 1), (4, 1, 1)), [node.op_type for node in nodes])


def test_a_normalisation_behind_is_folded_afterwards() -> None:
    nodes = [
        op("Conv", "x w", "c"),
        op("Add", "c b0", "d"),
        op("BatchNormalization", "d b1 b1 b1 v", "y"),
    ]
    proto = convolution(nodes, (1, 8, 1, 1), (8,))
    proto.graph.initializer.append(constant("v", np.ones(8)))
    found = normalized(proto)
    FoldBiasAddsPass()(found)
    FuseBatchNormalizationPass()(found)
    assert [node.op_type for node in found.graph.node] == ["Conv"]
    assert np.allclose(run(proto), run(found.proto), rtol=1e-5, atol=1e-5)
