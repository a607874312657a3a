"""What nodes are called in findings."""

from __future__ import annotations

from tests.builders import branch_model, in_memory, op
from tests.preflight import models
from trtdeploy.preflight.checking import check_model
from trtdeploy.preflight.labels import label_nodes, translate_keys
from trtdeploy.preflight.target import CheckTarget

RTX = CheckTarget("tensorrt_rtx", "1.7.1")


def names(proto: object) -> list[str]:
    return [place.node for place in label_nodes(proto).values()]  # type: ignore[arg-type]


def test_names_stay_and_positions_count_from_zero() -> None:
    assert names(models.unknown_operators()) == ["fancy1", "unnamed #1", "fg", "lookup"]


def test_unnamed_nodes_of_nested_graphs_and_functions_say_where_they_are() -> None:
    proto = branch_model([op("Relu", "x", "t", "")], [op("Neg", "x", "e", "")])
    assert names(proto) == ["pick", *["unnamed #0 in tested of 'pick'"] * 2]
    assert names(models.local_function()) == [
        "call",
        "unnamed #0 in function local::Twice",
        "inner",
    ]


def test_keys_in_messages_become_names_even_behind_the_inliner() -> None:
    labels = label_nodes(models.local_function())
    assert translate_keys(labels, "Node(#2__1) after #0") == "Node(inner) after call"
    assert translate_keys(labels, "#99 is nobody") == "#99 is nobody"


def test_findings_inside_functions_carry_the_users_names() -> None:
    proto = models.local_function()
    proto.functions[0].node[1].op_type = "Bernoulli"
    report = check_model(in_memory(proto), target=RTX)
    assert [(f.code, f.node) for f in report.blockers] == [("unsupported-operator", "inner")]


def test_findings_inside_branches_are_found() -> None:
    proto = branch_model([op("Bernoulli", "x", "t", "")], [op("Neg", "x", "e")])
    (finding,) = check_model(in_memory(proto), target=RTX).blockers
    assert finding.node == "unnamed #0 in tested of 'pick'"
