from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.builders import op
from trtdeploy.config.recipe import RECIPES, find_recipe, make_weak_recipe
from trtdeploy.core.dtypes import DType
from trtdeploy.core.errors import NotPossibleError
from trtdeploy.core.number_formats import FLOAT_LIMITS, FloatLimits
from trtdeploy.graph.schemas import find_operator_types


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_is_found_by_its_name(name: str) -> None:
    assert find_recipe(name).name == name
    assert find_recipe(name).summary


@pytest.mark.parametrize(
    ("name", "hint"),
    [("fp61", "Did you mean 'fp16'?"), ("awq", "--set recipe=NAME"), ("", "'tf32'")],
)
def test_an_unknown_recipe_is_not_possible(name: str, hint: str) -> None:
    with pytest.raises(NotPossibleError, match=", ".join(sorted(RECIPES))) as info:
        find_recipe(name)
    assert hint in info.value.hint


def limits_of(name: str) -> FloatLimits:
    low = RECIPES[name].low
    assert low is not None
    return FLOAT_LIMITS[low]


@pytest.mark.parametrize(
    ("name", "dtype"), [("fp16", np.float16), ("bf16", ml_dtypes.bfloat16)], ids=["fp16", "bf16"]
)
def test_limits_are_those_of_the_type(name: str, dtype: type) -> None:
    limits = limits_of(name)
    info = ml_dtypes.finfo(dtype)
    assert limits.max == float(info.max)
    assert limits.smallest_normal == float(info.tiny)
    below = np.nextafter(np.float32(limits.overflow), np.float32(0))
    with np.errstate(over="ignore"):
        assert np.isinf(np.float32(limits.overflow).astype(dtype))
        assert np.isfinite(below.astype(dtype).astype(np.float32))


def test_types_of_the_recipes() -> None:
    types = {
        name: (recipe.low and recipe.low.label, recipe.quantized and recipe.quantized.name)
        for name, recipe in RECIPES.items()
    }
    assert types == {
        "fp32": (None, None),
        "tf32": (None, None),
        "fp16": ("float16", None),
        "bf16": ("bfloat16", None),
        "int8": ("float16", "int8"),
        "int8-fp32": (None, "int8"),
        "fp8": ("float16", "fp8"),
    }
    assert {name for name, recipe in RECIPES.items() if not recipe.tf32} == {"fp32", "int8-fp32"}


def test_opsets_have_the_scales_that_a_recipe_writes() -> None:
    for recipe in RECIPES.values():
        if recipe.quantized is not None:
            for op_type in ("QuantizeLinear", "DequantizeLinear"):
                types = find_operator_types(op(op_type, "x s", "y"), recipe.opset)
                assert types is not None
                assert types.input_allows(1, recipe.graph_dtype)


def test_weak_typing_leaves_the_graph_in_fp32() -> None:
    weak = make_weak_recipe(RECIPES["int8"])
    assert (weak.name, weak.opset, weak.low) == ("int8", 13, DType.FLOAT16)
    assert weak.graph_dtype is DType.FLOAT32
    assert RECIPES["int8"].graph_dtype is DType.FLOAT16
    assert make_weak_recipe(RECIPES["fp16"]) is RECIPES["fp16"]
    assert make_weak_recipe(RECIPES["int8-fp32"]).weak
    with pytest.raises(NotPossibleError, match="fp8 needs a strongly typed network"):
        make_weak_recipe(RECIPES["fp8"])
