"""Kinds of outputs and the tolerances they get."""

from __future__ import annotations

import numpy as np
import pytest

from trtdeploy.config.recipe import RECIPES
from trtdeploy.parity.tolerance import (
    OutputKind,
    find_class_axis,
    find_kind,
    make_recipe_tolerance,
    make_tolerance_provider,
    raise_tolerance,
)

VALUES = np.array([[-3.0, 2.0, 5.0]], np.float32)
SHARES = np.array([[0.2, 0.3, 0.5]], np.float32)


@pytest.mark.parametrize(
    ("name", "array", "kind"),
    [
        ("labels", np.array([1]), OutputKind.EXACT),
        ("mask", np.array([True]), OutputKind.EXACT),
        ("words", np.array(["a"], object), OutputKind.EXACT),
        ("y", SHARES, OutputKind.PROBABILITIES),
        ("y", SHARES.astype(np.float16), OutputKind.PROBABILITIES),
        ("y", SHARES * 0.5, OutputKind.GENERIC),
        ("scores", SHARES * 0.5, OutputKind.PROBABILITIES),
        ("scores", VALUES, OutputKind.GENERIC),
        ("class_logits", VALUES, OutputKind.LOGITS),
        ("pred_boxes", VALUES, OutputKind.BOXES),
        ("last_hidden_state", VALUES, OutputKind.EMBEDDINGS),
        ("pooler_output", SHARES, OutputKind.EMBEDDINGS),
        ("output0", VALUES, OutputKind.GENERIC),
        ("y", np.array([[1.0]]), OutputKind.GENERIC),
        ("y", np.array([np.nan]), OutputKind.GENERIC),
        ("y", np.float32(1.0).reshape(()), OutputKind.GENERIC),
        ("y", np.zeros((0, 4), np.float32), OutputKind.GENERIC),
    ],
)
def test_kinds(name: str, array: np.ndarray, kind: OutputKind) -> None:
    assert find_kind(name, array) is kind


@pytest.mark.parametrize(
    ("kind", "shape", "axis"),
    [
        (OutputKind.LOGITS, (2, 8, 100), 2),
        (OutputKind.LOGITS, (2, 21, 8, 8), 1),
        (OutputKind.PROBABILITIES, (5,), 0),
        (OutputKind.GENERIC, (2, 10), 1),
        (OutputKind.GENERIC, (2, 84, 8400), None),
        (OutputKind.GENERIC, (2, 1), None),
        (OutputKind.EMBEDDINGS, (2, 384), None),
        (OutputKind.BOXES, (2, 4), None),
        (OutputKind.GENERIC, (), None),
    ],
)
def test_class_axes(kind: OutputKind, shape: tuple[int, ...], axis: int | None) -> None:
    assert find_class_axis(kind, shape) == axis


def test_a_coarser_recipe_allows_more() -> None:
    limits = [RECIPES[name].relative_l2 for name in ("fp32", "tf32", "fp16", "bf16", "int8", "fp8")]
    assert limits == sorted(limits)


def test_the_recipe_is_the_default_and_says_so() -> None:
    tolerance = make_tolerance_provider(RECIPES["fp16"])("y", VALUES)
    assert tolerance.scaled
    assert tolerance.origin == "recipe fp16, values"


def test_the_profile_replaces_it_for_every_element() -> None:
    both = make_tolerance_provider(RECIPES["fp16"], atol=1e-3, rtol=1e-2)("y", VALUES)
    assert (both.atol, both.rtol, both.relative_l2) == (1e-3, 1e-2, None)
    assert (both.close_fraction, both.scaled) == (1.0, False)
    assert both.origin == "profile parity.atol and parity.rtol"
    absolute = make_tolerance_provider(RECIPES["fp16"], atol=1e-3)("y", VALUES)
    assert (absolute.atol, absolute.rtol, absolute.scaled) == (1e-3, 0.0, False)
    relative = make_tolerance_provider(RECIPES["fp16"], rtol=1e-2)("y", VALUES)
    assert (relative.atol, relative.rtol, relative.scaled) == (
        RECIPES["fp16"].relative_l2,
        1e-2,
        True,
    )
    assert "parity.rtol" in relative.origin


def test_exact_values_get_no_tolerance_from_anywhere() -> None:
    tolerance = make_tolerance_provider(RECIPES["int8"], atol=5.0)("ids", np.array([1]))
    assert (tolerance.atol, tolerance.rtol) == (0.0, 0.0)


def test_probabilities_are_allowed_a_share_of_one() -> None:
    assert not make_recipe_tolerance(RECIPES["fp16"], OutputKind.PROBABILITIES).scaled


def test_a_high_noise_floor_widens_the_recipe_but_not_without_end() -> None:
    recipe = make_recipe_tolerance(RECIPES["fp16"], OutputKind.GENERIC)
    assert raise_tolerance(recipe, 1e-3, 1.0) is recipe
    raised = raise_tolerance(recipe, 0.02, 0.99)
    assert raised.relative_l2 == pytest.approx(0.04)
    assert raised.close_fraction == pytest.approx(0.98)
    assert raised.origin.endswith("raised to 2 times the noise floor")
    assert raise_tolerance(recipe, 9.0, 0.1).relative_l2 == pytest.approx(0.1)
    given = make_tolerance_provider(RECIPES["fp16"], atol=1.0)("y", VALUES)
    assert raise_tolerance(given, 9.0, 0.1) is given
