from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pydantic_core import to_jsonable_python

from tests.builders import branch_model, chain, constant, loaded, model, normalized, op, value
from trtdeploy.config.recipe import RECIPES
from trtdeploy.core.dtypes import DType
from trtdeploy.core.errors import UsageError
from trtdeploy.graph.index import build_index
from trtdeploy.precision import planning
from trtdeploy.precision.plan import PrecisionPlan
from trtdeploy.precision.planning import plan_precision
from trtdeploy.precision.typed_model import apply_recipe
from trtdeploy.precision.typing_options import TypingOptions

EVERY_REASON = model(
    [
        op("MatMul", "x w", "m", "free"),
        op("Softmax", "m", "s", "probabilities"),
        op("Transpose", "s", "t", "mover"),
        op("ReduceSum", "t", "r", "sum", keepdims=1),
        op("Exp", "r", "e", "pinned_node"),
        op("RandomNormalLike", "x", "n", "noise"),
        op("Add", "e n", "y", "last"),
        op("Shape", "x", "size", "shape"),
    ],
    [value("x", (4, 4))],
    [value("y", (4, 4))],
    [constant("w", np.full((4, 4), 1e5))],
)


def plan(proto: object, recipe: str = "fp16", **options: object) -> PrecisionPlan:
    return plan_precision(build_index(normalized(proto)), RECIPES[recipe], **options)


def test_every_decision_has_a_rule_and_a_reason() -> None:
    decisions = plan(EVERY_REASON, pins=["pinned_node"]).nodes
    assert {name: d.rule for name, d in decisions.items()} == {
        "free": "KeepWideConstantRule",
        "probabilities": "KeepSoftmaxRule",
        "mover": "neighbours",
        "sum": "KeepOperatorRule",
        "pinned_node": "KeepPinnedRule",
        "noise": "KeepOperatorRule",
        "last": "recipe",
        "shape": "neighbours",
    }
    assert all(decision.reason for decision in decisions.values())
    assert decisions["last"].dtype is DType.FLOAT16
    assert decisions["last"].reason == "recipe fp16"


def test_a_plan_is_plain_data_for_reports() -> None:
    found = to_jsonable_python(plan(EVERY_REASON).summarize())
    assert found["recipe"] == "fp16"
    assert found["counts"] == {"float32": 6, "float16": 2}
    assert found["nodes"]["noise"]["dtype"] == "float32"
    assert found["constants"] == [
        {
            "name": "w",
            "value": "100000.0",
            "action": "keep",
            "limit": None,
            "reason": "a weight of MatMul 'free'; that node stays FP32",
        }
    ]
    assert found["notes"] == ["RandomNormalLike 'noise' is random; TensorRT ignores its seed"]


@pytest.mark.parametrize("recipe", ["fp32", "tf32"])
def test_wide_recipes_keep_everything_and_still_note_what_is_random(recipe: str) -> None:
    found = plan(EVERY_REASON, recipe)
    assert found.count_by_dtype() == {"float32": 8}
    assert found.notes
    assert not found.constants


def test_integer_nodes_need_no_decision() -> None:
    proto = model(
        [op("Shape", "i", "s"), op("Neg", "i", "y")],
        [value("i", (4,), 7)],
        [value("y", (4,), 7)],
    )
    assert not plan(proto).nodes
    assert plan(proto).dtype_of("y") is DType.FLOAT32


def test_nested_nodes_have_decisions_too() -> None:
    proto = branch_model([op("Softmax", "x", "t")], [op("Neg", "x", "e")])
    nodes = plan(proto).nodes
    assert nodes["t"].dtype is DType.FLOAT32
    assert nodes["e"].dtype is nodes["pick"].dtype is DType.FLOAT16


def test_a_pin_that_matches_nothing_stops_the_recipe(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="matches no node"):
        apply_recipe(
            loaded(chain(["Relu"]), tmp_path), TypingOptions(RECIPES["fp16"], pins=("nowhere",))
        )


def test_measured_ranges_are_used(tmp_path: Path) -> None:
    found = loaded(chain(["Relu", "Exp", "Neg"]), tmp_path)
    typed = apply_recipe(found, TypingOptions(RECIPES["fp16"], ranges={"v1": 1e6}))
    assert typed.plan.count_by_dtype() == {"float16": 1, "float32": 2}


def test_every_rule_is_in_use() -> None:
    folder = Path(planning.__file__).parent / "rules"
    files = {path.stem for path in folder.glob("*.py")} - {"__init__", "rule", "readers"}
    rules = {type(rule).__module__.rsplit(".", 1)[-1] for rule in planning._make_rules(())}
    assert files == rules


def test_every_rule_has_a_test() -> None:
    folder = Path(planning.__file__).parent / "rules"
    tested = {path.stem for path in (Path(__file__).parent / "rules").glob("test_*.py")}
    for path in folder.glob("*.py"):
        if path.stem not in ("__init__", "rule", "readers"):
            assert f"test_{path.stem}" in tested
