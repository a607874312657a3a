from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from trtdeploy.core.errors import NotPossibleError
from trtdeploy.precision.recipe import RECIPES, FloatLimits, find_recipe


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_is_found_by_its_name(name: str) -> None:
    assert find_recipe(name).name == name
    assert find_recipe(name).summary


@pytest.mark.parametrize(
    ("name", "hint"),
    [("fp61", "Did you mean 'fp16'?"), ("int8", "--set recipe=NAME"), ("", "'tf32'")],
)
def test_an_unknown_recipe_is_not_possible(name: str, hint: str) -> None:
    with pytest.raises(NotPossibleError, match="bf16, fp16, fp32, tf32") as info:
        find_recipe(name)
    assert hint in info.value.hint


def limits_of(name: str) -> FloatLimits:
    limits = RECIPES[name].limits
    assert limits is not None
    return limits


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


def test_only_narrow_recipes_have_a_type() -> None:
    assert {name for name, recipe in RECIPES.items() if recipe.low} == {"fp16", "bf16"}
    assert {name for name, recipe in RECIPES.items() if not recipe.tf32} == {"fp32"}
