from __future__ import annotations

import time

from tests.builders import branch_model, chain, in_memory, model, op, value
from trtdeploy.graph.model import walk_nodes
from trtdeploy.graph.passes.name_nodes import NameNodesPass


def test_unnamed_and_doubly_named_nodes_get_names_of_their_own() -> None:
    proto = branch_model(
        [op("Relu", "x", "t", "same")],
        [op("Neg", "x", "n", ""), op("Abs", "n", "e", "same")],
        before=[op("Exp", "x", "h", "same"), op("Log", "h", "g", "Neg_4")],
    )
    found = in_memory(proto)
    NameNodesPass()(found)
    names = [node.name for node in walk_nodes(found.graph)]
    assert names == ["same", "Neg_4", "pick", "same_2", "Neg_4_2", "same_3"]
    assert found.changes == ["several nodes were named 'same'; all but one were renamed"]


def test_good_names_stay() -> None:
    found = in_memory(chain(["Relu", "Neg"]))
    NameNodesPass()(found)
    assert [node.name for node in found.graph.node] == ["v0", "v1"]
    assert not found.changes


def test_twenty_thousand_nodes_of_one_name_are_quick() -> None:
    nodes = [op("Relu", "x", f"v{i}", "same") for i in range(20_000)]
    found = in_memory(model(nodes, [value("x")], []))
    started = time.perf_counter()
    NameNodesPass()(found)
    assert len({node.name for node in found.graph.node}) == 20_000
    assert time.perf_counter() - started < 5
