from __future__ import annotations

import onnx

from tests.builders import branch_model, chain, in_memory, model, op, value
from trtdeploy.graph.model import walk_nodes
from trtdeploy.graph.passes.remove_identities import RemoveIdentitiesPass


def test_readers_read_what_an_identity_copies() -> None:
    found = in_memory(chain(["Relu", "Identity", "Identity", "Neg"]))
    RemoveIdentitiesPass()(found)
    assert [(n.op_type, n.input[0]) for n in found.graph.node] == [("Relu", "x"), ("Neg", "v0")]


def test_an_identity_that_makes_an_output_stays() -> None:
    proto = branch_model(
        [op("Identity", "h", "t")],
        [op("Neg", "h", "e")],
        before=[op("Identity", "x", "i"), op("Identity", "i", "h")],
    )
    found = in_memory(proto)
    RemoveIdentitiesPass()(found)
    nodes = list(walk_nodes(found.graph))
    assert [(n.op_type, n.input[0]) for n in nodes] == [
        ("If", "flag"), ("Identity", "x"), ("Neg", "x"),
    ]  # fmt: skip
    onnx.checker.check_model(found.proto, full_check=True)


def test_somebody_elses_identity_stays() -> None:
    nodes = [op("Identity", "x", "h", domain="acme"), op("Neg", "h", "y")]
    found = in_memory(model(nodes, [value("x")], [value("y")], domains=["acme"]))
    RemoveIdentitiesPass()(found)
    assert len(found.graph.node) == 2
