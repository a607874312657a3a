from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, numpy_helper

from tests.builders import (
    BOOL,
    FLOAT,
    INT64,
    branch_model,
    constant,
    in_memory,
    loaded,
    model,
    op,
    random_array,
    value,
)
from trtdeploy.graph.model import OnnxModel, walk_nodes
from trtdeploy.graph.passes.drop_unread_nodes import DropUnreadNodesPass
from trtdeploy.graph.passes.drop_unused_constants import DropUnusedConstantsPass
from trtdeploy.graph.passes.fold_constants import FoldConstantsPass


def fold(found: OnnxModel) -> list[str]:
    FoldConstantsPass()(found)
    DropUnreadNodesPass()(found)
    DropUnusedConstantsPass()(found)
    return [node.op_type for node in walk_nodes(found.graph)]


def read(found: OnnxModel, name: str) -> list[object]:
    tensor = next(t for t in found.graph.initializer if t.name == name)
    return numpy_helper.to_array(tensor).tolist()


def sizes_chain() -> list[NodeProto]:
    return [
        op("Shape", "x", "sizes"),
        op("Gather", "sizes first", "one", axis=0),
        op("Unsqueeze", "one axes", "listed"),
        op("Concat", "listed rest", "target", axis=0),
        op("Reshape", "x target", "y"),
    ]


SIZES = (
    constant("first", 0, np.int64),
    constant("axes", [0], np.int64),
    constant("rest", [-1], np.int64),
)


def test_known_sizes_become_a_target() -> None:
    found = in_memory(model(sizes_chain(), [value("x", (4, 3, 8))], [value("y", (4, 24))], SIZES))
    assert fold(found) == ["Reshape"]
    assert read(found, "target") == [4, -1]
    onnx.checker.check_model(found.proto, full_check=True)
    assert found.changes == [
        "4 nodes of known result folded into constants",
    ]


def test_a_dynamic_size_is_not_folded() -> None:
    proto = model(sizes_chain(), [value("x", ("N", 3, 8))], [value("y", None)], SIZES)
    assert fold(in_memory(proto)) == [node.op_type for node in proto.graph.node]


def test_a_known_size_beside_a_dynamic_one_is_folded() -> None:
    constants = (constant("first", 1, np.int64), *SIZES[1:])
    found = in_memory(
        model(sizes_chain(), [value("x", ("N", 3, 8))], [value("y", None)], constants)
    )
    assert fold(found) == ["Reshape"]
    assert read(found, "target") == [3, -1]


def test_a_stale_declaration_inside_is_not_believed() -> None:
    proto = model(
        [op("Relu", "x", "r"), op("Shape", "r", "y")],
        [value("x", ("N", 3))],
        [value("y", (2,), INT64)],
    )
    proto.graph.node.append(op("Size", "y", "z"))
    proto.graph.value_info.append(value("r", (7, 3)))
    found = in_memory(proto)
    assert "Shape" in fold(found)


@pytest.mark.parametrize(
    ("node", "constants"),
    [
        (op("Exp", "c", "k"), [constant("c", [1.0, 2.0, 3.0, 4.0])]),
        (op("Cast", "c", "k", to=FLOAT), [constant("c", [0.1] * 4, np.float64)]),
        (op("ReduceSum", "c", "k", keepdims=0), [constant("c", np.ones((3, 4)))]),
        (
            op("DequantizeLinear", "q s", "k"),
            [constant("q", [1, 2, 3, 4], np.int8), constant("s", 0.5)],
        ),
        (op("RandomUniformLike", "c", "k"), [constant("c", np.ones(4))]),
    ],
    ids=["exp", "cast", "sum", "dequantize", "random"],
)
def test_what_runtimes_may_compute_otherwise_stays(
    node: NodeProto, constants: list[TensorProto]
) -> None:
    found = in_memory(model([node, op("Add", "x k", "y")], [value("x")], [value("y")], constants))
    assert fold(found) == [node.op_type, "Add"]


@pytest.mark.parametrize(
    ("node", "constants"),
    [
        (op("ConstantOfShape", "c", "k"), [constant("c", [1 << 40], np.int64)]),
        (op("Expand", "f c", "k"), [constant("f", 1.0), constant("c", [1 << 40], np.int64)]),
        (op("Tile", "f c", "k"), [constant("f", [1.0]), constant("c", [1 << 40], np.int64)]),
        (
            op("Range", "a b d", "k"),
            [constant("a", 0.0), constant("b", 1e12), constant("d", 1.0)],
        ),
        (
            op("Add", "a b", "k"),
            [constant("a", np.ones((500, 1))), constant("b", np.ones((1, 500)))],
        ),
    ],
    ids=["fill", "expand", "tile", "range", "broadcast"],
)
def test_a_result_that_would_be_huge_is_never_made(
    node: NodeProto, constants: list[TensorProto]
) -> None:
    found = in_memory(
        model([node, op("Mul", "x k", "y")], [value("x", None)], [value("y", None)], constants)
    )
    assert fold(found) == [node.op_type, "Mul"]


@pytest.mark.parametrize("zero", [0, 1])
def test_an_integer_division_by_zero_stays(zero: int) -> None:
    nodes = [op("Div", "a b", "k"), op("Add", "x k", "y")]
    constants = [constant("a", [4], np.int64), constant("b", [zero], np.int64)]
    found = in_memory(model(nodes, [value("x", (1,), INT64)], [value("y", (1,), INT64)], constants))
    assert fold(found) == (["Add"] if zero else ["Div", "Add"])


def test_a_large_weight_is_moved_once_when_nothing_else_reads_it(tmp_path: Path) -> None:
    weight = random_array(64, 32)
    nodes = [op("Transpose", "w", "wt", perm=[1, 0]), op("MatMul", "x wt", "y")]
    found = loaded(
        model(nodes, [value("x", ("N", 32))], [value("y", None)], [constant("w", weight)]), tmp_path
    )
    assert "w" in found.weights
    assert fold(found) == ["MatMul"]
    np.testing.assert_array_equal(np.array(read(found, "wt"), np.float32), weight.T)
    assert not found.weights


def test_a_large_weight_that_another_node_reads_is_not_doubled(tmp_path: Path) -> None:
    nodes = [
        op("Transpose", "w", "wt", perm=[1, 0]),
        op("MatMul", "x wt", "h"),
        op("MatMul", "h w", "y"),
    ]
    proto = model(
        nodes, [value("x", ("N", 32))], [value("y", None)], [constant("w", random_array(64, 32))]
    )
    assert fold(loaded(proto, tmp_path)) == ["Transpose", "MatMul", "MatMul"]


def test_branches_are_folded_too() -> None:
    proto = branch_model(
        [op("Add", "a a", "two"), op("Add", "x two", "t")],
        [op("Neg", "x", "e")],
        constants=[constant("a", 1.0)],
    )
    assert fold(in_memory(proto)) == ["If", "Add", "Neg"]


def test_a_result_of_the_graph_keeps_its_node() -> None:
    proto = model([op("Add", "a a", "y")], [value("x")], [value("y", ())], [constant("a", 1.0)])
    assert fold(in_memory(proto)) == ["Add"]


def test_somebody_elses_operator_stays() -> None:
    nodes = [op("Add", "a a", "k", domain="acme"), op("Add", "x k", "y")]
    found = in_memory(
        model(nodes, [value("x")], [value("y")], [constant("a", 1.0)], domains=["acme"])
    )
    FoldConstantsPass()(found)
    assert len(found.graph.node) == 2


def test_unread_nodes_go_with_what_only_they_read() -> None:
    proto = model(
        [
            op("Shape", "x", "sizes"),
            op("Gather", "sizes c", "one"),
            op("Not", "flag", "unread"),
            op("Relu", "x", "y"),
        ],
        [value("x"), value("flag", (), BOOL)],
        [value("y")],
        [constant("c", 0, np.int64)],
    )
    found = in_memory(proto)
    DropUnreadNodesPass()(found)
    assert [node.op_type for node in found.graph.node] == ["Relu"]
    assert found.changes == ["3 nodes dropped whose results nothing reads"]


def test_what_a_branch_reads_is_read() -> None:
    proto = branch_model(
        [op("Add", "h x", "t")],
        [op("Neg", "x", "e"), op("Abs", "x", "unread")],
        before=[op("Relu", "x", "h"), op("Exp", "x", "gone")],
    )
    found = in_memory(proto)
    DropUnreadNodesPass()(found)
    assert [node.op_type for node in walk_nodes(found.graph)] == ["Relu", "If", "Add", "Neg"]
    onnx.checker.check_model(found.proto, full_check=True)
