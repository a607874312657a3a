"""Wrong outputs must not hide behind large ones; honest rounding must not look wrong."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.builders import random_array
from trtdeploy.export.difference import compare_arrays

Array = np.ndarray[Any, Any]
RTOL = 1e-4


def boxes_and_scores() -> Array:
    """64 candidates of 4 box sides in pixels and 4 scores, channels on axis 1."""
    found = np.abs(random_array(2, 8, 64, seed=1)).clip(0.1, 1)
    found[:, :4] *= 640
    return found


def masked(value: float, share: float = 0.5) -> Array:
    logits = random_array(3, 8, seed=2)
    logits[np.random.default_rng(3).random(logits.shape) < share] = value
    return logits


def triple_logits(array: Array) -> Array:
    found = array.copy()
    found[np.abs(array) < 100] *= 3
    return found


@pytest.mark.parametrize("axes", [(0, 1, 2), (0, 2, 1), (1, 0, 2), (2, 1, 0)])
def test_scores_beside_boxes_are_measured_as_scores(axes: tuple[int, ...]) -> None:
    expected = boxes_and_scores()
    found = expected.copy()
    found[:, 5] *= 0.95
    compared = compare_arrays(expected.transpose(axes), found.transpose(axes), RTOL)
    assert not compared.equal
    assert compared.error == pytest.approx(0.05, rel=1e-3)


@pytest.mark.parametrize("value", [-1e4, -1e9, float(np.finfo(np.float32).min), -np.inf])
@pytest.mark.parametrize("share", [0.2, 0.8])
def test_masked_logits_are_measured_as_logits(value: float, share: float) -> None:
    expected = masked(value, share)
    found = triple_logits(expected)
    assert compare_arrays(expected, expected, RTOL).equal
    assert not compare_arrays(expected, found, RTOL).equal
    assert not compare_arrays(expected, found, RTOL, lambda: [expected.astype(np.float64)]).equal


def test_the_masks_of_another_precision_explain_nothing() -> None:
    expected = masked(float(np.finfo(np.float32).min))
    wide = np.where(expected < -1e30, np.finfo(np.float64).min, expected.astype(np.float64))
    assert not compare_arrays(expected, triple_logits(expected), RTOL, lambda: [wide]).equal


def test_rounding_of_values_that_cancel_is_no_difference() -> None:
    exact = random_array(4, 32, 8, seed=4).astype(np.float64)
    noise = [2e-6 * random_array(4, 32, 8, seed=seed) for seed in (5, 6)]
    exact[..., 3] = 0
    exact[..., 5] *= 1e-5
    expected, found = ((exact + each).astype(np.float32) for each in noise)
    assert not compare_arrays(expected, found, RTOL).equal
    compared = compare_arrays(expected, found, RTOL, lambda: [exact])
    assert compared.equal
    assert compared.error < 1e-5, "noise is a share of the output, not of itself"


def test_a_sigmoid_may_be_some_last_places_off_near_0() -> None:
    expected = boxes_and_scores()
    expected[:, 4:] = 1e-5
    assert compare_arrays(expected, expected + np.float32(5e-8), RTOL).equal


@pytest.mark.parametrize("other", [np.inf, 1e30, 300.0])
def test_what_rounding_explains_has_an_end(other: float) -> None:
    expected = np.ones((3, 4), np.float32)
    moved = expected.astype(np.float64)
    moved[0, 0] = other
    assert not compare_arrays(expected, expected * 2, RTOL, lambda: [moved]).equal


def ids(*changed: int) -> Array:
    found = np.zeros(100, np.int64)
    found[list(changed)] = 1
    return found


@pytest.mark.parametrize(
    ("found", "others", "equal"),
    [
        (ids(), [], True),
        (ids(7), [], False),
        (ids(7), [ids()], False),
        (ids(7), [ids(8)], True),
        (ids(*range(20)), [ids(8)], False),
        (ids() + 7, [ids(*range(50))], False),
    ],
)
def test_ids_may_change_where_rounding_changes_them(
    found: Array, others: Sequence[Array], equal: bool
) -> None:
    compared = compare_arrays(ids(), found, RTOL, lambda: others)
    assert compared.equal is equal
    assert compared.error == np.mean(found != 0)


@pytest.mark.parametrize(
    ("expected", "found", "error"),
    [
        ([1.0, -2.0], [1.0, -2.5], 0.25),
        ([0.0, 0.0], [0.0, 0.5], 0.5),
        ([np.inf, np.nan], [np.inf, np.nan], 0.0),
        ([np.inf, 1.0], [1.0, 1.0], 0.5),
        ([1.0, 1.0], [np.nan, 1.0], 0.5),
        ([1.0, 1.0], [np.inf, 1.0], 0.5),
        ([True, True], [True, False], 0.5),
        ([], [], 0.0),
        (3.0, 4.5, 0.5),
    ],
)
def test_errors_are_finite_and_special_values_count(
    expected: list[float], found: list[float], error: float
) -> None:
    compared = compare_arrays(np.array(expected), np.array(found), RTOL)
    assert (compared.error, compared.equal) == (error, error == 0)
    assert math.isfinite(compared.error)


def test_one_special_value_among_millions_counts() -> None:
    expected = np.zeros(1 << 20, np.float32)
    found = expected.copy()
    found[5] = np.nan
    compared = compare_arrays(expected, found, RTOL)
    assert not compared.equal
    assert compared.worst == "nan instead of 0.0 at [5]"
