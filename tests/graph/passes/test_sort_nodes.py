from __future__ import annotations

import onnx
import pytest

from tests.builders import branch_model, chain, in_memory, model, op, value
from trtdeploy.core.errors import ModelFileError
from trtdeploy.graph.model import walk_nodes
from trtdeploy.graph.passes.sort_nodes import SortNodesPass


def test_a_backward_chain_is_turned_around() -> None:
    proto = chain(["Relu", "Neg", "Abs"])
    nodes = list(proto.graph.node)
    del proto.graph.node[:]
    proto.graph.node.extend(reversed(nodes))
    found = in_memory(proto)
    SortNodesPass()(found)
    assert [node.op_type for node in found.graph.node] == ["Relu", "Neg", "Abs"]
    onnx.checker.check_model(found.proto, full_check=True)


def test_a_value_captured_by_a_branch_comes_before_the_if() -> None:
    proto = branch_model(
        [op("Add", "u h", "t"), op("Neg", "x", "u")],
        [op("Relu", "x", "e")],
    )
    proto.graph.node.append(op("Exp", "x", "h"))
    found = in_memory(proto)
    SortNodesPass()(found)
    assert [node.op_type for node in walk_nodes(found.graph)] == [
        "Exp", "If", "Neg", "Add", "Relu",
    ]  # fmt: skip
    onnx.checker.check_model(found.proto, full_check=True)


def test_sorted_graphs_are_left_alone() -> None:
    found = in_memory(branch_model([op("Relu", "x", "t")], [op("Relu", "x", "e")]))
    before = found.proto.SerializeToString(deterministic=True)
    SortNodesPass()(found)
    assert found.proto.SerializeToString(deterministic=True) == before


@pytest.mark.parametrize(
    "nodes",
    [
        [op("Add", "x b", "a"), op("Neg", "a", "b")],
        [op("Add", "x y", "y")],
    ],
    ids=["two", "one"],
)
def test_a_circle_is_refused(nodes: list) -> None:
    with pytest.raises(ModelFileError, match="depends on its own result"):
        SortNodesPass()(in_memory(model(nodes, [value("x")], [])))
