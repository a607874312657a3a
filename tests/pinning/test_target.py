"""Targets: their texts, and how far outputs are from them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from trtdeploy.config.recipe import RECIPES
from trtdeploy.core.errors import UsageError
from trtdeploy.parity.tolerance import make_tolerance_provider
from trtdeploy.pinning.candidate import Score
from trtdeploy.pinning.target import Target, TargetJudge, parse_target

REFERENCE = np.array([[3.0, -4.0, 0.0], [1.0, 2.0, 5.0]], np.float32)


def judge(text: str, candidate: np.ndarray, reference: np.ndarray = REFERENCE) -> Score:
    found = TargetJudge(parse_target(text), make_tolerance_provider(RECIPES["int8"]))
    return found.score([({"y": reference}, {"y": candidate})])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sqnr=30", Target("sqnr", 30.0)),
        ("rel-l2=0.01", Target("rel-l2", 0.01)),
        ("max=1%", Target("max", 0.01)),
        ("top1=99.5%", Target("top1", 0.995)),
        ("", Target("parity", 1.0)),
    ],
)
def test_texts_are_read_and_written_back(text: str, expected: Target) -> None:
    target = parse_target(text)
    assert target == expected
    if text:
        assert parse_target(str(target)) == target


@pytest.mark.parametrize(
    "text", ["snr=30", "sqnr", "sqnr=", "sqnr=loud", "max=-1", "max=0", "top1=101%", "sqnr=nan"]
)
def test_other_texts_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match=r"sqnr=30|max=1%|top1=99%"):
        parse_target(text)


@pytest.mark.parametrize(
    ("text", "allowed"),
    [("rel-l2=0.1", 0.1), ("sqnr=20", 0.1), ("max=10%", 0.5 / np.linalg.norm(REFERENCE))],
)
def test_the_excess_is_1_at_the_limit_and_grows_with_the_error(text: str, allowed: float) -> None:
    error = np.zeros_like(REFERENCE)
    error[0, 2] = np.linalg.norm(REFERENCE) * allowed
    assert judge(text, REFERENCE + error).excess == pytest.approx(1.0, rel=1e-4)
    assert judge(text, REFERENCE + error / 2).excess == pytest.approx(0.5, rel=1e-4)
    assert not judge(text, REFERENCE + error * 1.01).reached


def test_noise_is_relative_power_and_sqnr_that_of_the_worst_output() -> None:
    score = TargetJudge(parse_target("sqnr=10"), make_tolerance_provider(RECIPES["int8"])).score(
        [({"y": REFERENCE, "z": REFERENCE}, {"y": REFERENCE * 1.1, "z": REFERENCE * 1.01})]
    )
    assert score.noise == pytest.approx({"y": 0.01, "z": 0.0001}, rel=1e-4)
    assert score.sqnr_db == pytest.approx(20.0, abs=0.01)
    assert score.value == pytest.approx(20.0, abs=0.01)


def test_top1_counts_rows_and_treats_no_tie_as_equal() -> None:
    candidate = REFERENCE.copy()
    candidate[1, 1] = 5.1
    score = judge("top1=75%", candidate)
    assert score.value == 0.5
    assert score.excess == pytest.approx(2.0)
    assert judge("top1=100%", REFERENCE).reached
    assert judge("top1=100%", candidate).excess == math.inf


def test_top1_needs_classes() -> None:
    cube = np.ones((2, 3, 4), np.float32)
    with pytest.raises(UsageError, match="class scores"):
        judge("top1=99%", cube, cube)


@pytest.mark.parametrize("text", ["sqnr=1", "max=99%", "top1=1%", ""])
def test_what_is_not_finite_never_reaches_a_target(text: str) -> None:
    candidate = REFERENCE.copy()
    candidate[0, 0] = np.nan
    score = judge(text, candidate)
    assert score.excess == math.inf
    assert score.noise == {"y": math.inf}
    assert score.sqnr_db is None


@pytest.mark.parametrize(("factor", "reached"), [(1.10, True), (1.20, False)])
def test_without_a_target_the_recipe_s_tolerance_holds(factor: float, reached: bool) -> None:
    # int8 allows a relative L2 error of 0.15
    score = judge("", REFERENCE * np.float32(factor))
    assert score.reached is reached
    assert score.excess >= (factor - 1.0) / 0.15 * 0.999


def test_integers_have_no_noise_and_must_be_equal_for_parity_only() -> None:
    labels = np.array([1, 2], np.int64)
    assert judge("sqnr=30", labels + 1, labels).noise == {}
    assert judge("sqnr=30", labels + 1, labels).reached
    assert not judge("", labels + 1, labels).reached
