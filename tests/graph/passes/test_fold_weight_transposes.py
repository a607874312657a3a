from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, NodeProto, TensorProto, numpy_helper

from tests.builders import (
    FLOAT,
    FLOAT16,
    INT64,
    constant,
    loaded,
    loop_model,
    model,
    normalized,
    op,
    random_array,
    value,
)
from trtdeploy.graph.normalization import normalize_model
from trtdeploy.graph.passes import fold_weight_transposes
from trtdeploy.graph.passes.fold_weight_transposes import FoldWeightTransposesPass

X = {"x": random_array(3, 4, seed=9)}


def run(proto: ModelProto, feeds: Any = X) -> list[np.ndarray[Any, Any]]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
    return session.run(None, dict(feeds))


def product(nodes: list[NodeProto], weight: TensorProto, *numbers: list[int]) -> ModelProto:
    """Make ``y = x @ t``; ``nodes`` compute ``t`` from ``weight`` and integers ``i0``, ``i1``..."""
    integers = [constant(f"i{i}", given, np.int64) for i, given in enumerate(numbers)]
    return model(
        [*nodes, op("MatMul", "x t", "y")],
        [value("x", ("N", 4))],
        [value("y", ("A", "B"))],
        [weight, *integers],
    )


def fold(proto: ModelProto) -> ModelProto:
    found = normalized(proto)
    FoldWeightTransposesPass()(found)
    onnx.checker.check_model(found.proto, full_check=True)
    return found.proto


W = constant("w", random_array(5, 4))
FLAT = constant("w", random_array(20))
MOVES = {
    "transpose": ([op("Transpose", "w", "t")], W, ()),
    "perm": ([op("Transpose", "w", "t", perm=[1, 0])], W, ()),
    "reshape": ([op("Reshape", "w i0", "t")], FLAT, ([4, -1],)),
    "reshape_copies": (
        [op("Reshape", "w i0", "a"), op("Transpose", "a", "t")],
        W,
        ([0, 4],),
    ),
    "unsqueeze_squeeze": (
        [op("Unsqueeze", "w i0", "a"), op("Squeeze", "a i0", "b"), op("Transpose", "b", "t")],
        W,
        ([0, -1],),
    ),
    "flatten": (
        [op("Flatten", "w", "t", axis=2)],
        constant("w", random_array(2, 2, 5)),
        (),
    ),
    "flatten_back": (
        [op("Flatten", "w", "a", axis=-1), op("Transpose", "a", "t")],
        W,
        (),
    ),
    "cast": (
        [op("Cast", "w", "a", to=FLOAT), op("Transpose", "a", "t")],
        constant("w", random_array(5, 4), np.float16),
        (),
    ),
    "double": (
        [op("Transpose", "w", "a"), op("Cast", "a", "t", to=FLOAT)],
        constant("w", np.random.default_rng(1).normal(size=(5, 4)), np.float64),
        (),
    ),
}


@pytest.mark.parametrize("case", MOVES.values(), ids=MOVES)
def test_moved_weights_become_constants(
    case: tuple[list[NodeProto], TensorProto, tuple[list[int], ...]],
) -> None:
    nodes, weight, numbers = case
    proto = product(nodes, weight, *numbers)
    folded = fold(proto)
    assert [node.op_type for node in folded.graph.node] == ["MatMul"]
    assert [(t.name, t.data_type) for t in folded.graph.initializer] == [("t", FLOAT)]
    assert np.array_equal(run(proto)[0], run(folded)[0])


def test_a_weight_that_others_read_too() -> None:
    proto = model(
        [
            op("Gather", "w i", "e"),
            op("Transpose", "w", "t"),
            op("MatMul", "e t", "y"),
            op("MatMul", "x t", "z"),
            op("Neg", "t", "v"),
        ],
        [value("x", ("N", 4)), value("i", ("N",), INT64)],
        [value("y", ("A", "B")), value("z", ("A", "B")), value("v", ("A", "B"))],
        [W],
    )
    found = normalized(proto)
    FoldWeightTransposesPass()(found)
    assert [node.op_type for node in found.graph.node] == ["Gather", "MatMul", "MatMul", "Neg"]
    assert found.changes == ["1 weight transposed, reshaped or cast once instead of at run time"]
    feeds = {**X, "i": np.array([0, 3])}
    for before, after in zip(run(proto, feeds), run(found.proto, feeds), strict=True):
        assert np.array_equal(before, after)


def test_a_step_in_between_that_somebody_else_reads_stays() -> None:
    proto = product([op("Transpose", "w", "a"), op("Reshape", "a i0", "t")], W, [4, 5])
    proto.graph.node.append(op("Neg", "a", "z"))
    proto.graph.output.append(value("z", ("A", "B")))
    folded = fold(proto)
    assert [node.op_type for node in folded.graph.node] == ["Transpose", "MatMul", "Neg"]
    for before, after in zip(run(proto), run(folded), strict=True):
        assert np.array_equal(before, after)


LEFT_ALONE = {
    "computed": [op("Transpose", "x", "a"), op("Relu", "a", "t")],
    "an_input": [op("Transpose", "x", "t")],
    "to_fp16": [op("Cast", "w", "a", to=FLOAT16), op("Cast", "a", "t", to=FLOAT)],
    "computed_shape": [op("Shape", "x", "s"), op("Reshape", "w s", "t")],
}


@pytest.mark.parametrize("nodes", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_left_alone(nodes: list[NodeProto]) -> None:
    proto = product(nodes, constant("w", random_array(4, 3)))
    assert len(fold(proto).graph.node) == len(nodes) + 1


@pytest.mark.parametrize(
    ("node", "numbers"),
    [
        (op("Transpose", "w", "t", perm=[0, 5]), ()),
        (op("Transpose", "w", "t", perm=[0, 0]), ()),
        (op("Reshape", "w i0", "t"), ([7, 9],)),
        (op("Reshape", "w i0", "t"), ([4, 5, 0],)),
        (op("Squeeze", "w i0", "t"), ([1],)),
        (op("Squeeze", "w", "t"), ()),
        (op("Unsqueeze", "w i0", "t"), ([9],)),
    ],
)
def test_damaged_moves_are_left_alone(node: NodeProto, numbers: tuple[list[int], ...]) -> None:
    found = normalized(product([node], W, *numbers))
    before = found.proto.SerializeToString(deterministic=True)
    FoldWeightTransposesPass()(found)
    assert found.proto.SerializeToString(deterministic=True) == before


def test_a_weight_that_is_a_result_keeps_its_node() -> None:
    proto = product([op("Transpose", "w", "t")], W)
    proto.graph.output.append(value("t", ("A", "B")))
    assert len(fold(proto).graph.node) == 2


def test_bodies_are_left_alone() -> None:
    body = [op("Transpose", "w", "t"), op("MatMul", "s t", "s_next")]
    folded = fold(loop_model(body, [constant("w", random_array(4, 4))]))
    assert len(folded.graph.node[0].attribute[0].g.node) == 2 + 1


def test_huge_weights_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weight = random_array(500, 4)
    proto = product([op("Transpose", "w", "t")], constant("w", weight))
    for limit, left in ((weight.nbytes - 1, 2), (weight.nbytes, 1)):
        monkeypatch.setattr(fold_weight_transposes, "LIMIT_BYTES", limit)
        found = normalize_model(loaded(proto, tmp_path))
        FoldWeightTransposesPass()(found)
        assert len(found.graph.node) == left
    assert np.array_equal(numpy_helper.to_array(found.graph.initializer[0]), weight.T)
