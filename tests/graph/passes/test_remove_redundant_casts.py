from __future__ import annotations

import pytest
from onnx import TensorProto

from tests.builders import (
    BFLOAT16,
    FLOAT,
    FLOAT16,
    INT32,
    branch_model,
    in_memory,
    model,
    op,
    value,
)
from trtdeploy.graph.model import walk_nodes
from trtdeploy.graph.passes.remove_redundant_casts import RemoveRedundantCastsPass

DOUBLE = TensorProto.DOUBLE


def casts_left(source: int, targets: list[int]) -> list[int]:
    """Return the types of the Casts that stay between ``x`` and ``Neg``."""
    nodes = [op("Relu", "x", "v0")]
    nodes += [op("Cast", f"v{i}", f"v{i + 1}", to=to) for i, to in enumerate(targets)]
    nodes.append(op("Neg", f"v{len(targets)}", "y"))
    last = targets[-1] if targets else source
    found = in_memory(model(nodes, [value("x", ("N", 4), source)], [value("y", ("N", 4), last)]))
    RemoveRedundantCastsPass()(found)
    return [node.attribute[0].i for node in found.graph.node if node.op_type == "Cast"]


@pytest.mark.parametrize(
    ("source", "targets", "left"),
    [
        (FLOAT, [FLOAT], []),
        (FLOAT16, [FLOAT16, FLOAT16], []),
        (FLOAT16, [FLOAT, FLOAT16], []),
        (BFLOAT16, [FLOAT, BFLOAT16], []),
        (FLOAT, [DOUBLE, FLOAT], []),
        (FLOAT16, [FLOAT, FLOAT16, FLOAT, FLOAT16], []),
        (FLOAT16, [FLOAT, FLOAT], [FLOAT]),
        (FLOAT, [FLOAT16, FLOAT], [FLOAT16, FLOAT]),
        (FLOAT16, [BFLOAT16, FLOAT16], [BFLOAT16, FLOAT16]),
        (FLOAT, [INT32, FLOAT], [INT32, FLOAT]),
        (FLOAT16, [FLOAT, BFLOAT16], [FLOAT, BFLOAT16]),
    ],
)
def test_only_casts_without_effect_go(source: int, targets: list[int], left: list[int]) -> None:
    assert casts_left(source, targets) == left


def test_a_cast_that_makes_an_output_stays() -> None:
    found = in_memory(model([op("Cast", "x", "y", to=FLOAT)], [value("x")], [value("y")]))
    RemoveRedundantCastsPass()(found)
    assert [node.op_type for node in found.graph.node] == ["Cast"]


def test_a_widening_that_others_read_stays() -> None:
    nodes = [
        op("Cast", "x", "wide", to=FLOAT),
        op("Cast", "wide", "narrow", to=FLOAT16),
        op("Neg", "narrow", "y"),
        op("Neg", "wide", "z"),
    ]
    outputs = [value("y", ("N", 4), FLOAT16), value("z")]
    found = in_memory(model(nodes, [value("x", ("N", 4), FLOAT16)], outputs))
    RemoveRedundantCastsPass()(found)
    assert [node.name for node in found.graph.node] == ["wide", "y", "z"]
    assert found.graph.node[1].input[0] == "x"


def test_readers_in_nested_graphs_are_rewired() -> None:
    found = in_memory(
        branch_model(
            [op("Cast", "c", "d", to=FLOAT), op("Neg", "d", "t")],
            [op("Cast", "c", "e", to=FLOAT)],
            before=[op("Cast", "x", "c", to=FLOAT)],
        )
    )
    RemoveRedundantCastsPass()(found)
    nodes = list(walk_nodes(found.graph))
    assert [(node.op_type, node.input[0]) for node in nodes] == [
        ("If", "flag"),
        ("Neg", "x"),
        ("Cast", "x"),
    ]


def test_somebody_elses_cast_is_not_ours() -> None:
    nodes = [op("Cast", "x", "h", to=FLOAT, domain="acme"), op("Neg", "h", "y")]
    found = in_memory(model(nodes, [value("x")], [value("y")], domains=["acme"]))
    found.graph.value_info.append(value("h"))
    RemoveRedundantCastsPass()(found)
    assert [node.op_type for node in found.graph.node] == ["Cast", "Neg"]
