from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto

from tests.builders import branch_model, chain, constant, loaded, model, op, random_array, value
from tests.precision.rule_runs import find_kept, make_context
from trtdeploy.precision.plan import ConstantDecision
from trtdeploy.precision.rules.wide_constant import MASK_FRACTION, KeepWideConstantRule

RULE = KeepWideConstantRule()
MASK_LIMIT = 65504 * MASK_FRACTION


def decide(proto: ModelProto, recipe: str = "fp16") -> tuple[set[str], list[ConstantDecision]]:
    context = make_context(proto, recipe)
    return set(find_kept(RULE, proto, recipe)), list(RULE.find_constants(context))


def masked(*nodes: NodeProto, mask: Any = -1e12) -> ModelProto:
    """Make attention scores ``s`` whose softmax reads ``masked``, which ``nodes`` compute."""
    return model(
        [*nodes, op("Softmax", "masked", "y", axis=-1)],
        [value("s", (2, 4)), value("m", (2, 4)), value("flag", (2, 4), 9)],
        [value("y", (2, 4))],
        [constant("big", mask), constant("two", 2.0), constant("like", [2, 4], np.int64)],
    )


@pytest.mark.parametrize(
    "nodes",
    [
        [op("Where", "flag s big", "masked")],
        [op("Where", "flag s big", "w"), op("Reshape", "w like", "masked")],
        [op("Where", "flag s big", "w"), op("Mul", "w two", "masked")],
    ],
    ids=["where", "where_reshape", "where_scale"],
)
@pytest.mark.parametrize("mask", [-1e12, -3.4028235e38, [0.0, -1e9, 1.0, -1e9]])
def test_a_mask_that_replaces_scores_is_clamped(nodes: list[NodeProto], mask: Any) -> None:
    kept, (decision,) = decide(masked(*nodes, mask=mask))
    assert kept == set()
    assert (decision.name, decision.action, decision.limit) == ("big", "clamp", MASK_LIMIT)
    assert float(decision.value) == pytest.approx(np.min(mask))
    assert decision.reason == "a mask on its way to 'y'"


ADD = op("Add", "s b", "masked")


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([op("Add", "s big", "masked")], {"masked", "y"}),
        ([op("Sub", "s big", "masked")], {"masked", "y"}),
        ([op("Mul", "m big", "b"), ADD], {"b", "masked", "y"}),
        ([op("Where", "flag big m", "w"), op("Reshape", "w like", "b"), ADD], {"w", "masked", "y"}),
    ],
    ids=["add", "sub", "mul_add", "through_a_reshape"],
)
@pytest.mark.parametrize("mask", [-1e12, -3.4028235e38, [0.0, -1e9, 1.0, -1e9]])
def test_a_mask_that_is_added_drowns_the_scores_in_fp32(
    nodes: list[NodeProto], expected: set[str], mask: Any
) -> None:
    kept, (decision,) = decide(masked(*nodes, mask=mask))
    assert kept == expected
    assert (decision.name, decision.action, decision.limit) == ("big", "keep", None)
    assert decision.reason == "a mask that is added to the scores of 'y' in FP32"


def test_two_clamped_masks_together_do_not_overflow() -> None:
    assert np.isfinite(np.float16(-MASK_LIMIT) + np.float16(-MASK_LIMIT))


def test_a_mask_made_in_a_branch_is_followed() -> None:
    proto = branch_model(
        [op("Mul", "x big", "t")],
        [op("Neg", "x", "e")],
        after=[op("Add", "p x", "a"), op("Softmax", "a", "y")],
        inner_constants=([constant("big", [-1e9])], []),
    )
    kept, (decision,) = decide(proto)
    assert kept == {"t", "a", "y"}
    assert "added to the scores of 'y'" in decision.reason


@pytest.mark.parametrize(
    "mask", [[-1e12, 3.0, 0.0, 1.0], [1e5, 0.5, 0.5, 0.5]], ids=["scores", "table"]
)
def test_a_table_of_weights_is_no_mask(mask: list[float]) -> None:
    kept, (decision,) = decide(masked(op("Add", "s big", "masked"), mask=mask))
    assert kept == {"masked", "y"}
    assert (decision.action, decision.limit) == ("keep", None)
    assert "a weight of Add 'masked'" in decision.reason


def test_a_real_weight_stays_and_so_does_arithmetic_on_it() -> None:
    weight = random_array(4, 4)
    weight[2, 2] = -9e4
    proto = chain(
        ["MatMul:w", "Relu", "Mul:scale", "Reshape:like", "Add:one", "Exp"],
        constants=[
            constant("w", weight),
            constant("scale", 1e6),
            constant("like", [-1, 4], np.int64),
            constant("one", 1.0),
        ],
    )
    kept, constants = decide(proto)
    assert kept == {"v0", "v2", "v4"}
    assert [(c.name, c.action) for c in constants] == [("w", "keep"), ("scale", "keep")]
    assert float(constants[0].value) == pytest.approx(-9e4)
    assert "a weight of MatMul 'v0'" in constants[0].reason


def test_a_table_that_is_looked_up_keeps_what_computes_on_it() -> None:
    proto = model(
        [op("Gather", "table i", "row"), op("Mul", "row x", "p"), op("Relu", "p", "y")],
        [value("x"), value("i", ("N",), 7)],
        [value("y")],
        [constant("table", [[1.0, 2.0, 3.0, 1e6]])],
    )
    assert decide(proto)[0] == {"row", "p"}


@pytest.mark.parametrize(
    ("operator", "bound", "action"),
    [
        ("Min", 1e5, "clamp"),
        ("Min", -1e5, "keep"),
        ("Max", -1e5, "clamp"),
        ("Max", 1e5, "keep"),
        ("Max", [0.0, -1e5, 2.0, 3.0], "clamp"),
    ],
)
def test_bounds(operator: str, bound: Any, action: str) -> None:
    proto = chain(["Relu", f"{operator}:bound"], constants=[constant("bound", bound)])
    kept, (decision,) = decide(proto)
    assert decision.action == action
    assert decision.limit == (65504 if action == "clamp" else None)
    assert kept == (set() if action == "clamp" else {"v1"})


@pytest.mark.parametrize(
    ("low", "high", "actions"),
    [(-1e12, 1e12, ["clamp", "clamp"]), (-1e12, 6.0, ["clamp"]), (1e5, 1e6, ["keep", "clamp"])],
)
def test_bounds_of_a_clip(low: float, high: float, actions: list[str]) -> None:
    proto = model(
        [op("Clip", "x low high", "y")],
        [value("x")],
        [value("y")],
        [constant("low", low), constant("high", high)],
    )
    assert [c.action for c in decide(proto)[1]] == actions


@pytest.mark.parametrize("bound", [np.inf, -np.inf, np.nan, 65504.0, 65519.0])
def test_infinities_and_the_last_finite_value_are_not_out_of_range(bound: float) -> None:
    proto = chain(["Relu", "Min:bound"], constants=[constant("bound", bound)])
    assert decide(proto) == (set(), [])


def test_the_first_value_that_rounds_to_infinity_is_out_of_range() -> None:
    proto = chain(["Relu", "MatMul:w"], constants=[constant("w", np.full((4, 4), 65520.0))])
    assert decide(proto)[0] == {"v1"}


def test_a_filled_shape_is_a_constant_too() -> None:
    nodes = [
        op("Shape", "s", "shape"),
        op("ConstantOfShape", "shape", "filled", value=constant("", [-1e9])),
        op("Add", "s filled", "masked"),
    ]
    kept, (decision,) = decide(masked(*nodes, mask=0.0))
    assert kept == {"filled", "masked", "y"}
    assert (decision.name, float(decision.value)) == ("filled.value", -1e9)
    nodes[2] = op("Where", "flag s filled", "masked")
    kept, (decision,) = decide(masked(*nodes, mask=0.0))
    assert not kept
    assert (decision.name, decision.action) == ("filled.value", "clamp")
    nodes[1:] = [
        op("ConstantOfShape", "shape", "filled", value=constant("", [1e6])),
        op("Mul", "s filled", "product"),
        op("Exp", "product", "masked"),
    ]
    assert decide(masked(*nodes, mask=0.0))[0] == {"filled", "product"}


def test_one_constant_may_be_a_mask_here_and_a_weight_there() -> None:
    proto = masked(op("Where", "flag s big", "masked"), op("Mul", "m big", "z"))
    proto.graph.output.append(value("z", (2, 4)))
    kept, constants = decide(proto)
    assert kept == {"z"}
    assert sorted(c.action for c in constants) == ["clamp", "keep"]


def test_bfloat16_holds_what_float16_does_not() -> None:
    proto = masked(op("Add", "s big", "masked"))
    assert decide(proto, "bf16") == (set(), [])
    proto = masked(op("Add", "s big", "masked"), mask=-3.4028235e38)
    kept, (decision,) = decide(proto, "bf16")
    assert not kept
    assert decision.action == "clamp"


def test_streamed_weights_are_measured(tmp_path: Path) -> None:
    weight = random_array(4, 2000)
    weight[3, 1999] = 1e5
    found = loaded(chain(["MatMul:w"], constants=[constant("w", weight)]), tmp_path)
    assert find_kept(RULE, found).keys() == {"v0"}


def test_diamonds_are_walked_once() -> None:
    nodes = [op("Mul", "x big", "v0")]
    nodes += [op("Add", f"v{i} v{i}", f"v{i + 1}") for i in range(200)]
    nodes.append(op("Relu", "v200", "y"))
    proto = model(nodes, [value("x")], [value("y")], [constant("big", 1e6)])
    assert len(decide(proto)[0]) == 201
