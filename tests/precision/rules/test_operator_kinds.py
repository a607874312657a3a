from __future__ import annotations

import pytest
from onnx import defs

from tests.builders import branch_model, constant, model, op, value
from tests.precision.rule_runs import find_kept
from trtdeploy.graph.schemas import find_schema
from trtdeploy.precision.rules.operator_kinds import KEPT_OPERATORS, KeepOperatorRule


@pytest.mark.parametrize("op_type", ["ReduceSum", "RandomNormalLike", "CumSum", "Constant"])
def test_listed_operators_are_kept_in_every_graph(op_type: str) -> None:
    operands = {"CumSum": "x axis", "Constant": ""}.get(op_type, "x")
    attrs = {"value_float": 1.0} if op_type == "Constant" else {}
    nodes = [op(op_type, operands, "t", "tested", **attrs)]
    axis = constant("axis", 0, "int64")
    proto = branch_model(nodes, [op("Relu", "x", "e")], constants=[axis])
    kept = find_kept(KeepOperatorRule(), proto)
    assert kept.keys() == {"tested"}
    assert kept["tested"].startswith(f"{op_type}: ")


@pytest.mark.parametrize("op_type", ["Conv", "MatMul", "Relu", "ReduceMean", "GlobalAveragePool"])
def test_the_work_of_a_network_is_free(op_type: str) -> None:
    operands = "x x" if op_type in ("Conv", "MatMul") else "x"
    proto = model([op(op_type, operands, "y")], [value("x", (1, 1, 4, 4))], [value("y", None)])
    assert not find_kept(KeepOperatorRule(), proto)


@pytest.mark.parametrize("op_type", KEPT_OPERATORS)
def test_every_listed_operator_exists(op_type: str) -> None:
    if op_type == "CumProd" and defs.onnx_opset_version() < 26:
        pytest.skip("this onnx is older than the operator")
    assert find_schema(op(op_type, "x", "y"), defs.onnx_opset_version()) is not None
