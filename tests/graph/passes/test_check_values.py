from __future__ import annotations

import pytest
from onnx import ModelProto

from tests.builders import branch_model, constant, in_memory, loop_model, model, op, value
from trtdeploy.core.errors import ModelFileError
from trtdeploy.graph.passes.check_values import CheckValuesPass


@pytest.mark.parametrize(
    ("proto", "message"),
    [
        (model([op("Add", "x b", "y")], [value("x")], [value("y")]), "'y' .Add. reads 'b'"),
        (model([op("Relu", "x", "y")], [value("x")], [value("z")]), "has the output 'z'"),
        (branch_model([op("Neg", "q", "t")], [op("Neg", "x", "e")]), "'t' .Neg. reads 'q'"),
        (branch_model([op("Neg", "x", "t")], [op("Neg", "t", "e")]), "'e' .Neg. reads 't'"),
        (
            branch_model([op("Neg", "x", "t")], [op("Neg", "x", "e")], after=[op("Neg", "t", "y")]),
            "'y' .Neg. reads 't'",
        ),
        (branch_model([op("Neg", "x", "n")], [op("Neg", "x", "e")]), "has the output 't'"),
    ],
    ids=["operand", "output", "in_branch", "of_sibling", "of_branch", "result_of_branch"],
)
def test_a_value_without_origin_is_refused(proto: ModelProto, message: str) -> None:
    with pytest.raises(ModelFileError, match=message):
        CheckValuesPass()(in_memory(proto))


@pytest.mark.parametrize(
    "proto",
    [
        model([op("Clip", "x - w", "y")], [value("x")], [value("y")], [constant("w", 1.0)]),
        model([op("Neg", "h", "y"), op("Relu", "x", "h")], [value("x")], [value("y")]),
        branch_model([op("Neg", "h", "t")], [op("Neg", "x", "e")], before=[op("Abs", "x", "h")]),
        loop_model([op("Add", "s x", "s_next")], []),
        model([], [value("x")], [value("x")]),
    ],
    ids=["optional", "unsorted", "captured", "loop", "passed_on"],
)
def test_what_is_defined_anywhere_passes(proto: ModelProto) -> None:
    CheckValuesPass()(in_memory(proto))
