from __future__ import annotations

import numpy as np
import pytest

from tests.builders import (
    FLOAT,
    INT64,
    branch_model,
    branch_node,
    constant,
    graph,
    model,
    normalized,
    op,
    value,
)
from trtdeploy.graph.index import ModelIndex, build_index
from trtdeploy.graph.shape_values import (
    find_shape_arithmetic,
    find_shape_tensor_inputs,
    shape_slots_of,
)

HALF = constant("half", 0.5)
AXIS = constant("axis", 2, np.int64)
OUT = value("y", None)


def indexed(nodes: list, inputs: list, constants: list, opset: int = 17) -> ModelIndex:
    return build_index(normalized(model(nodes, inputs, [OUT], constants, opset=opset)))


def test_float_arithmetic_between_a_shape_and_a_size_is_found() -> None:
    index = indexed(
        [
            op("Relu", "x", "r"),
            op("Shape", "r", "shape"),
            op("Gather", "shape axis", "side", axis=0),
            op("Cast", "side", "side_f", to=FLOAT),
            op("Mul", "side_f half", "small_f"),
            op("Floor", "small_f", "floored"),
            op("Cast", "floored", "small", to=INT64),
            op("Range", "zero small one", "y"),
        ],
        [value("x", ("N", 3, "H"))],
        [HALF, AXIS, constant("zero", 0, np.int64), constant("one", 1, np.int64)],
    )
    assert set(find_shape_arithmetic(index)) == {"side", "side_f", "small_f", "floored", "small"}


def test_the_walk_stops_at_operators_that_work_on_data() -> None:
    index = indexed(
        [
            op("MatMul", "x x", "m"),
            op("ArgMax", "m", "best", axis=-1),
            op("ReduceMax", "best", "count", keepdims=0),
            op("Range", "zero count one", "y"),
        ],
        [value("x", (4, 4))],
        [constant("zero", 0, np.int64), constant("one", 1, np.int64)],
    )
    assert set(find_shape_arithmetic(index)) == {"count"}


def test_the_walk_leaves_a_branch_for_the_graph_around_it_and_enters_branches() -> None:
    pick = branch_node(
        graph([op("Add", "n n", "doubled")], [], [value("doubled", [1], INT64)]),
        graph([op("Neg", "n", "negated")], [], [value("negated", [1], INT64)]),
        "chosen",
    )
    proto = branch_model(
        [op("Reshape", "x sizes", "t")],
        [op("Reshape", "x chosen", "e")],
        before=[op("Abs", "m", "sizes"), pick],
    )
    proto.graph.input.extend([value("n", [1], INT64), value("m", [1], INT64)])
    index = build_index(normalized(proto))
    assert set(find_shape_arithmetic(index)) == {"sizes", "chosen", "doubled", "negated"}
    assert find_shape_tensor_inputs(index) == {"n", "m", "flag"}


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([op("Reshape", "x n", "y")], {"n"}),
        ([op("Add", "n one", "m"), op("Expand", "x m", "y")], {"n"}),
        ([op("Gather", "x n", "y")], set()),
        ([op("Shape", "x", "s"), op("Reshape", "x s", "y")], set()),
        ([op("ConstantOfShape", "n", "z"), op("Add", "x z", "y")], {"n"}),
        ([op("Resize", "x - - n", "y", mode="nearest")], {"n"}),
        ([op("Cast", "f", "c", to=INT64), op("Reshape", "x c", "y")], {"f"}),
        ([op("Resize", "x - f", "y", mode="nearest")], {"f"}),
    ],
    ids=lambda v: "_".join(n.op_type for n in v) if isinstance(v, list) else "",
)
def test_inputs_whose_values_decide_shapes(nodes: list, expected: set[str]) -> None:
    inputs = [value("x", ("N", 3)), value("n", (2,), INT64), value("f", (2,))]
    index = indexed(nodes, inputs, [constant("one", 1, np.int64)])
    assert find_shape_tensor_inputs(index) == expected


def test_slots_of_other_operators_are_none() -> None:
    assert shape_slots_of(op("Relu", "x", "y")) == ()
    assert shape_slots_of(op("Reshape", "x s", "y")) == (1,)
