from __future__ import annotations

import pytest
from onnx import ModelProto, NodeProto, helper

from tests.builders import (
    FLOAT,
    FLOAT16,
    INT64,
    branch_model,
    chain,
    constant,
    graph,
    loop_model,
    model,
    op,
    value,
)
from tests.precision.rule_runs import find_kept
from trtdeploy.precision.rules.unsupported_type import KeepUnsupportedTypeRule

RULE = KeepUnsupportedTypeRule()
SEQUENCE = helper.make_tensor_sequence_value_info("s", FLOAT, None)


def one(node: NodeProto, opset: int = 17) -> ModelProto:
    inputs = [value("x"), value("i", (), INT64), SEQUENCE, value("half", ("N", 4), FLOAT16)]
    return model([node], inputs, [value("y", None)], opset=opset, domains=["acme"])


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        (op("Secret", "x", "y", domain="acme"), "operator acme.Secret is not in"),
        (op("NoSuchOperator", "x", "y"), "operator ai.onnx.NoSuchOperator is not in"),
        (op("SequenceAt", "s i", "y"), "works on sequences"),
        (op("Identity", "s", "y"), "the element type of 's' is not known"),
        (op("NonMaxSuppression", "x x i", "y"), "has no float16 form in opset 17"),
    ],
    ids=lambda v: v.op_type if isinstance(v, NodeProto) else "",
)
def test_nodes_without_a_narrow_form_are_kept(node: NodeProto, reason: str) -> None:
    assert reason in find_kept(RULE, one(node))["y"]


def test_a_node_whose_result_has_no_known_type_is_kept() -> None:
    proto = model(
        [op("Secret", "x", "h", domain="acme"), op("Relu", "h", "r"), op("Neg", "r", "y")],
        [value("x")],
        [value("y")],
        domains=["acme"],
    )
    assert find_kept(RULE, proto).keys() == {"h", "r", "y"}


@pytest.mark.parametrize(("opset", "kept"), [(21, {"y"}), (22, set())])
def test_bfloat16_forms_come_with_an_opset(opset: int, kept: set[str]) -> None:
    proto = model([op("Conv", "x x", "y")], [value("x", None)], [value("y", None)], opset=opset)
    assert find_kept(RULE, proto, "bf16").keys() == kept
    assert not find_kept(RULE, proto, "fp16")


@pytest.mark.parametrize(
    "node",
    [
        op("Relu", "x", "y"),
        op("Relu", "half", "y"),
        op("Cast", "i", "y", to=FLOAT),
        op("Shape", "x", "y"),
        op("Resize", "x - i", "y"),
        op("Clip", "x - -", "y"),
    ],
    ids=lambda n: n.op_type,
)
def test_other_nodes_are_free(node: NodeProto) -> None:
    assert not find_kept(RULE, one(node))


def test_branches_may_be_narrow_but_state_may_not() -> None:
    assert not find_kept(RULE, branch_model([op("Neg", "x", "t")], [op("Relu", "x", "e")]))
    loop = loop_model([op("Add", "s c", "s_next")], [constant("c", [1.0])])
    kept = find_kept(RULE, loop)
    assert kept.keys() == {"repeat"}
    assert "carries state" in kept["repeat"]


def test_scan_and_sequence_map_are_kept() -> None:
    body = graph([op("Relu", "e", "r")], [value("e", (4,))], [value("r", (4,))])
    scan = model(
        [op("Scan", "x", "y", "scan", body=body, num_scan_inputs=1)], [value("x")], [value("y")]
    )
    assert find_kept(RULE, scan).keys() == {"scan"}
    mapped = model([op("SequenceMap", "s", "y", "map", body=body)], [SEQUENCE], [])
    assert "map" in find_kept(RULE, mapped)


def test_an_empty_operand_has_no_type_to_know() -> None:
    assert not find_kept(RULE, chain(["Relu"]))
    proto = model([op("Clip", "x - -", "y")], [value("x")], [value("y")])
    assert not find_kept(RULE, proto)
