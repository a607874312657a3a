from __future__ import annotations

import pytest

from tests.builders import constant, model, op, value
from tests.precision.layer_rule_runs import find_kept_layers
from trtdeploy.precision.quantization.rules.activation_product import KeepActivationProductRule

SHAPE = ("N", 4, 8, 8)
ATTENTION = model(
    [
        op("Transpose", "k", "kt", perm=[0, 1, 3, 2]),
        op("MatMul", "q kt", "scores"),
        op("Mul", "scores factor", "scaled"),
        op("Add", "scaled mask", "masked"),
        op("Softmax", "masked", "p"),
        op("Where", "keep p factor", "chosen"),
        op("MatMul", "chosen v", "weighted"),
        op("MatMul", "weighted q", "y", "other"),
    ],
    [*(value(name, SHAPE) for name in ("q", "k", "v", "mask")), value("keep", SHAPE, 9)],
    [value("y", SHAPE)],
    [constant("factor", 0.5)],
)


@pytest.mark.parametrize(
    ("recipe", "kept"), [("int8", ["scores", "weighted", "other"]), ("fp8", ["other"])]
)
def test_products_of_attention_are_for_fp8_only(recipe: str, kept: list[str]) -> None:
    found = find_kept_layers(KeepActivationProductRule(), ATTENTION, recipe)
    assert list(found) == kept
    assert ("fused attention" in found["other"]) is (recipe == "int8")
