from __future__ import annotations

import pytest
from onnx import NodeProto

from tests.builders import branch_model, in_memory, model, op, value
from trtdeploy.core.errors import ModelFileError
from trtdeploy.graph.passes.check_nodes import CheckNodesPass


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (op("Cast", "", "y", "bad"), "'bad' .Cast.: has 0 inputs; 1 to 1"),
        (op("Add", "x x x", "y", "bad"), "'bad' .Add.: has 3 inputs; 2 to 2"),
        (op("Relu", "x", "y z", "bad"), "'bad' .Relu.: has 2 outputs; 1 to 1"),
        (op("If", "x", "", "bad"), "'bad' .If.: has 0 outputs"),
        (op("GatherND", "x x", "y", "bad", batch_dims=-3), "'bad' .GatherND.: batch_dims is neg"),
        (op("Split", "x", "y z", "bad", num_outputs=7), "'bad' .Split.: num_outputs is 7"),
    ],
)
def test_wrong_counts_are_refused(node: NodeProto, message: str) -> None:
    proto = model([node], [value("x")], [value("y")])
    with pytest.raises(ModelFileError, match=message):
        CheckNodesPass()(in_memory(proto))


def test_nested_nodes_are_checked() -> None:
    proto = branch_model([op("Relu", "x", "t")], [op("Relu", "x x", "e", "bad")])
    with pytest.raises(ModelFileError, match="'bad'"):
        CheckNodesPass()(in_memory(proto))


@pytest.mark.parametrize(
    "node",
    [
        op("Cast", "", "y", domain="acme"),
        op("NoSuchOperator", "", "y"),
        op("Concat", "x x x x x x", "y"),
        op("Clip", "x", "y"),
        op("Clip", "x - -", "y"),
    ],
)
def test_other_nodes_pass(node: NodeProto) -> None:
    CheckNodesPass()(in_memory(model([node], [value("x")], [value("y")])))
