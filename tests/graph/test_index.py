from __future__ import annotations

import pytest
from onnx import NodeProto, helper

from tests.builders import (
    BOOL,
    FLOAT,
    INT64,
    branch_model,
    chain,
    constant,
    graph,
    in_memory,
    loop_model,
    model,
    op,
    value,
)
from trtdeploy.core.dtypes import DType
from trtdeploy.graph.index import ModelIndex, Scope, build_index


def captured() -> tuple[ModelIndex, Scope, Scope, Scope]:
    proto = branch_model(
        [op("Add", "h c", "t")],
        [op("Relu", "x", "r"), op("Mul", "r d", "e")],
        before=[op("Neg", "x", "h")],
        constants=[constant("c", [1.0])],
        inner_constants=([], [constant("d", [2.0])]),
    )
    index = build_index(in_memory(proto))
    main, then, other = index.scopes
    return index, main, then, other


def test_values_are_seen_from_inner_graphs_but_not_from_outer_ones() -> None:
    _, main, then, other = captured()
    assert (then.owner.name, other.owner.name, main.owner) == ("pick", "pick", None)
    assert then.resolve("h") is main
    assert then.producer_of("h").op_type == "Neg"
    assert then.constant_of("c") is main.initializers["c"]
    assert main.resolve("t") is None
    assert main.constant_of("d") is None
    assert then.constant_of("d") is None
    assert other.constant_of("d") is not None
    assert main.producer_of("x") is None


def test_readers_in_nested_graphs_are_uses_of_the_outer_value() -> None:
    _, main, then, other = captured()
    assert [(use.node.op_type, use.slot, use.scope) for use in then.uses_of("h")] == [
        ("Add", 0, then)
    ]
    assert [use.node.op_type for use in main.uses_of("x")] == ["Neg", "Relu"]
    assert other.uses_of("nobody") == []


def test_types_are_inferred_in_every_graph() -> None:
    _, main, then, other = captured()
    assert main.type_of("h") is then.type_of("h") is DType.FLOAT32
    assert other.type_of("r") is other.type_of("d") is DType.FLOAT32
    assert main.type_of("flag") is DType.BOOL
    assert main.type_of("nobody") is DType.UNDEFINED


def test_bodies_belong_to_their_node() -> None:
    index, *_ = captured()
    pick = index.main.nodes[1]
    assert index.main.bodies_of(pick) == index.scopes[1:]
    assert index.main.bodies_of(index.main.nodes[0]) == []


def test_loop_bodies_declare_their_own_inputs() -> None:
    index = build_index(in_memory(loop_model([op("Add", "s c", "s_next")], [constant("c", [1.0])])))
    body = index.scopes[1]
    assert body.inputs == {"i", "go_on", "s"}
    assert body.type_of("s_next") is DType.FLOAT32
    assert index.main.type_of("y") is DType.FLOAT32


def test_what_shape_inference_cannot_know_is_undefined_unless_declared() -> None:
    proto = model(
        [op("Secret", "x", "a", domain="acme"), op("Secret", "x", "b", domain="acme")],
        [value("x")],
        [],
        domains=["acme"],
    )
    proto.graph.value_info.append(value("b", None, FLOAT))
    main = build_index(in_memory(proto)).main
    assert main.type_of("a") is DType.UNDEFINED
    assert main.type_of("b") is DType.FLOAT32


def test_sequences_and_optionals_are_undefined() -> None:
    sequence = helper.make_tensor_sequence_value_info("s", FLOAT, None)
    proto = model([op("SequenceAt", "s i", "y")], [sequence, value("i", (), INT64)], [value("y")])
    main = build_index(in_memory(proto)).main
    assert main.type_of("s") is DType.UNDEFINED
    assert main.type_of("y") is DType.FLOAT32


def test_a_model_that_shape_inference_rejects_is_still_indexed() -> None:
    proto = chain(["Relu"])
    proto.graph.node.append(op("Relu", "x", "r q", "two_results"))
    assert build_index(in_memory(proto)).main.type_of("x") is DType.FLOAT32


def test_renaming_reaches_nested_readers() -> None:
    index, *_ = captured()
    main, then = index.scopes[0], index.scopes[1]
    main.rename("h", "hidden")
    assert main.nodes[0].output[0] == "hidden"
    assert then.nodes[0].input[0] == "hidden"
    assert main.type_of("hidden") is DType.FLOAT32
    assert main.resolve("h") is None
    with pytest.raises(KeyError):
        main.rename("x", "input")


def test_scopes_are_outer_before_inner() -> None:
    flags = [value("go_on", (), BOOL)], [value("stop", (), BOOL)]
    body = graph([op("Not", "go_on", "stop")], *flags)
    inner = op("Loop", "trips go_on", "", "inner", body=body)
    proto = branch_model([inner, op("Relu", "x", "t")], [op("Relu", "x", "e")])
    owners = [s.owner.name if s.owner else "" for s in build_index(in_memory(proto)).scopes]
    assert owners == ["", "pick", "inner", "pick"]


@pytest.mark.parametrize(
    "node",
    [
        op("EyeLike", "u", "e", dtype=FLOAT),
        op("GatherND", "x i", "e", batch_dims=-3),
        op("Split", "x", "e f", num_outputs=7),
    ],
    ids=["EyeLike of unknown type", "negative batch_dims", "outputs that do not add up"],
)
def test_nodes_that_crash_inference_are_survived(node: NodeProto) -> None:
    """onnx 1.23 takes the process down on these; a crash would end the whole test run."""
    nodes = [op("Strange", "x", "u", domain="acme"), node, op("Relu", "x", "y")]
    proto = model(
        nodes,
        [value("x", [4, 4]), value("i", [1, 1], INT64)],
        [value("y", [4, 4])],
        opset=18,
        domains=["acme"],
    )
    index = build_index(in_memory(proto))
    assert index.main.type_of("y") is DType.FLOAT32
    assert index.main.nodes[1].domain == ""


def test_a_node_hidden_from_inference_hides_no_other_types() -> None:
    proto = model(
        [op("EyeLike", "x", "e", dtype=FLOAT), op("Relu", "x", "r"), op("Add", "r e", "y")],
        [value("x", (4, 4))],
        [value("y", (4, 4))],
    )
    main = build_index(in_memory(proto)).main
    assert main.type_of("e") is main.type_of("r") is DType.FLOAT32


def test_a_domain_that_is_not_imported_hides_no_types() -> None:
    proto = model(
        [op("FastGelu", "x", "g", domain="com.microsoft"), op("Relu", "x", "r")],
        [value("x")],
        [value("r")],
    )
    proto.graph.node.append(op("Neg", "r", "n"))
    main = build_index(in_memory(proto)).main
    assert main.type_of("n") is DType.FLOAT32
    assert main.type_of("g") is DType.UNDEFINED
