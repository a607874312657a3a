from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import constant, model, normalized, op, value
from tests.precision.layer_rule_runs import tower
from tests.precision.quantized_models import (
    compile_for_rtx,
    image_feeds,
    image_model,
    make_plan,
    quantize,
    scale_of,
)
from trtdeploy.config.recipe import RECIPES
from trtdeploy.core.errors import NotPossibleError, UsageError
from trtdeploy.graph.export_facts import write_export_facts
from trtdeploy.graph.index import build_index
from trtdeploy.precision.pins import Pin, find_pinned, parse_pin
from trtdeploy.precision.typed_model import apply_recipe
from trtdeploy.precision.typing_options import TypingOptions

MODEL = image_model(*tower("x", "y"))


@pytest.mark.parametrize(
    ("text", "pattern", "precision"),
    [
        ("/head/conv", "/head/conv", "fp32"),
        ("op:Softmax", "op:Softmax", "fp32"),
        ("fp32:op:Conv", "op:Conv", "fp32"),
        ("fp16:/head/*", "/head/*", "fp16"),
        ("int8:a:b", "a:b", "int8"),
        ("fp8:x", "x", "fp8"),
        ("fp8-e5m2:x", "x", "fp8-e5m2"),
        ("fp4:x", "fp4:x", "fp32"),
        ("int8", "int8", "fp32"),
    ],
)
def test_precision_and_pattern(text: str, pattern: str, precision: str) -> None:
    assert parse_pin(text) == Pin(text, pattern, precision)


def test_a_node_of_that_very_name_wins_over_the_prefix() -> None:
    assert parse_pin("int8:conv", {"int8:conv", "conv"}) == Pin("int8:conv", "int8:conv", "fp32")
    nodes = [op("Relu", "x", "a", "op:Exp"), op("Exp", "a", "y", "other")]
    index = build_index(normalized(model(nodes, [value("x")], [value("y")])))
    assert find_pinned(["op:Exp"], index).keys() == {"op:Exp"}


def test_exact_names_win_over_patterns_and_later_pins_over_earlier_ones() -> None:
    index = build_index(normalized(MODEL))
    found = find_pinned(["t3", "fp16:t[34]", "int8:*", "fp8:t5"], index)
    assert [found[name].text for name in ("t3", "t4", "t5")] == ["t3", "int8:*", "fp8:t5"]


@pytest.mark.parametrize(
    ("pins", "error", "said"),
    [
        (["nowhere"], UsageError, "'nowhere' matches no node"),
        (["int8:nowhere"], UsageError, "'int8:nowhere' matches no node"),
        (["fp8-e5m2:t1"], NotPossibleError, "no TensorRT has E5M2 tensors"),
        (["int8:act"], UsageError, "'act', which is not possible: it is a Relu, and only Conv"),
        (["int8:op:Relu"], UsageError, "it is a Relu"),
        (["int8:product"], UsageError, "'product', which is not possible: both operands"),
    ],
)
def test_pins_that_make_no_sense(pins: list[str], error: type[Exception], said: str) -> None:
    nodes, weights = tower("a", "t")
    nodes = [
        op("Relu", "x", "a", "act"),
        *nodes,
        op("MatMul", "c c", "p", "product"),
        op("Add", "t p", "y"),
    ]
    proto = image_model(nodes, [*weights, constant("c", [[1.0]])])
    with pytest.raises(error, match=said):
        make_plan(proto, "int8", pins)


def test_fp16_pins_need_a_recipe_with_fp16() -> None:
    with pytest.raises(UsageError, match="FP16, which recipe int8-fp32 does not use"):
        make_plan(MODEL, "int8-fp32", ["fp16:t1"])


def test_a_pattern_may_match_more_than_layers() -> None:
    nodes, weights = tower("a", "y")
    proto = image_model([op("Relu", "x", "a", "t_act"), *nodes], weights)
    plan, _ = make_plan(proto, "int8", ["int8:t*"])
    assert all(decision.quantized for decision in plan.layers.values())


def test_one_model_in_four_precisions(tmp_path: Path) -> None:
    pins = ["fp8:t0", "t3", "fp16:t4", "fp8:t5"]  # t0 is a first layer, which a rule keeps
    found = quantize(MODEL, tmp_path, image_feeds(), "int8", pins=pins)
    labels = {name: d.dtype.label for name, d in found.typed.plan.reported().items()}
    assert {name: labels[f"t{name}"] for name in (0, 1, 3, 4, 5, 9)} == {
        0: "float8e4m3fn", 1: "int8", 3: "float32", 4: "float16", 5: "float8e4m3fn", 9: "float16",
    }  # fmt: skip
    assert found.plan.layers["t0"].reason == "pinned to FP8 by 'fp8:t0'"
    assert scale_of(found.proto, "t0").dtype == scale_of(found.proto, "t1").dtype
    assert compile_for_rtx(found.proto, image_feeds()) == ""


def test_the_author_of_a_model_may_pin_too() -> None:
    nodes = [op("Exp", "x", "a", "norm/exp"), op("Relu", "a", "y", "last")]
    proto = normalized(model(nodes, [value("x")], [value("y")]))
    write_export_facts(proto, pins=["norm/*", "gone/*"])
    index = build_index(proto)
    assert {n: p.precision for n, p in find_pinned([], index).items()} == {"norm/exp": "fp32"}
    assert find_pinned(["fp16:norm/exp"], index)["norm/exp"].precision == "fp16"
    kept = apply_recipe(proto, TypingOptions(RECIPES["fp16"])).plan.nodes["norm/exp"]
    assert (kept.dtype.label, kept.rule) == ("float32", "KeepPinnedRule")
