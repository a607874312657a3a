"""Verdicts with reasons: the 21 pairs of case o18, and what they leave open."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from trtdeploy.config.recipe import RECIPES
from trtdeploy.parity.comparison import (
    ComparisonRules,
    OutputComparator,
)
from trtdeploy.parity.judgement import with_finding
from trtdeploy.parity.noise import expect_emulation
from trtdeploy.parity.result import OutputComparison, Tolerance, Verdict
from trtdeploy.parity.tolerance import OutputKind, make_recipe_tolerance, make_tolerance_provider

GIVEN = Tolerance(1e-3, 1e-3, None, scaled=False, origin="given")
BASE = np.random.default_rng(118).normal(0, 1, (4, 10)).astype(np.float32)
SPARSE = np.where(BASE > 1, BASE, 0).astype(np.float32)
ZEROS = np.zeros((3, 3), np.float32)


def compare_outputs(
    name: str,
    reference: np.ndarray,
    candidate: np.ndarray,
    tolerance: Tolerance,
    *,
    outcomes: list[np.ndarray] | None = None,
    rules: ComparisonRules | None = None,
) -> OutputComparison:
    comparator = OutputComparator(name, tolerance, rules or ComparisonRules())
    comparator.add(reference, candidate, outcomes)
    return comparator.finish()


def put(place: tuple[int, int], value: float) -> np.ndarray:
    array = BASE.copy()
    array[place] = value
    return array


NAN, INF = put((1, 2), np.nan), put((0, 0), np.inf)
LARGE = BASE * np.float32(1e5)
TIE = np.array([[1, 1 + 1e-6, 0]] * 2, np.float32)
FLIP = np.array([[0.1, 0.2, 5.0, 4.999]], np.float32)
BASELINE = "the FP32 baseline itself is NaN or infinite"

# name, reference, candidate, verdict, what a reason must say
PAIRS = [
    ("identical", BASE, BASE.copy(), "pass", ""),
    ("zeros_tiny", SPARSE, SPARSE + np.float32(1e-6), "pass", ""),
    ("zeros_exact", ZEROS, ZEROS.copy(), "pass", ""),
    ("zero_vs_value", ZEROS, ZEROS + np.float32(0.5), "fail", "outside the tolerance"),
    ("scaled", BASE, BASE * np.float32(2), "fail", "outside the tolerance"),
    ("nan_in_cand", BASE, NAN, "fail", "in the candidate alone: 1 of 40"),
    ("nan_in_both", NAN, NAN.copy(), "fail", BASELINE),
    ("nan_in_ref", NAN, BASE, "fail", BASELINE),
    ("inf_same_sign", INF, INF.copy(), "fail", BASELINE),
    ("inf_sign_flip", INF, put((0, 0), -np.inf), "fail", "(0 the same in the candidate)"),
    ("shape_broadcast", BASE, BASE[:1], "fail", "4x10 in the reference, 1x10 in the candidate"),
    ("rank_broadcast", BASE[:, :1], BASE[:, 0], "fail", "4x1 in the reference, 4 in the"),
    ("empty", np.zeros((0, 4), np.float32), np.zeros((0, 4), np.float32), "pass", ""),
    ("rows_missing", np.ones((3, 4)), np.ones((2, 4)), "fail", "3x4 in the reference, 2x4"),
    ("bool_equal", BASE > 0, BASE > 0, "pass", ""),
    (
        "int_wrap",
        np.array([0, 255], np.uint8),
        np.array([255, 0], np.uint8),
        "fail",
        "by up to 255",
    ),
    ("int64_big", np.array([2**53 + 1]), np.array([2**53]), "fail", "not equal: 1 of 1"),
    ("fp16_cand", BASE, BASE.astype(np.float16), "pass", "changed from float32 to float16"),
    ("fp16_range", LARGE, LARGE.clip(-65504, 65504).astype(np.float16), "fail", "outside the"),
    ("argmax_tie", TIE, TIE[:, [1, 0, 2]], "pass", "tied within the tolerance: 2"),
    (
        "argmax_flip",
        FLIP,
        np.array([[0.1, 0.2, 4.99, 5.01]], np.float32),
        "fail",
        "gap up to 0.001",
    ),
]


@pytest.mark.parametrize(
    ("reference", "candidate", "verdict", "text"),
    [pair[1:] for pair in PAIRS],
    ids=[pair[0] for pair in PAIRS],
)
def test_the_21_pairs_of_case_o18(
    reference: np.ndarray, candidate: np.ndarray, verdict: str, text: str
) -> None:
    comparison = compare_outputs("y", reference, candidate, GIVEN)
    assert comparison.verdict is Verdict(verdict)
    assert text in " | ".join(comparison.reasons)
    assert (comparison.verdict is Verdict.PASS) or comparison.reasons


def test_there_are_21_pairs() -> None:
    assert len(PAIRS) == 21


@pytest.mark.parametrize("pair", PAIRS, ids=[pair[0] for pair in PAIRS])
def test_the_pairs_get_the_same_verdict_from_the_recipe(pair: tuple[str, ...]) -> None:
    _, reference, candidate, verdict, _ = pair
    if pair[0] == "argmax_flip":
        verdict = "pass"  # 0.2 % of 5 is within 2 %
    tolerance = make_tolerance_provider(RECIPES["fp16"])("y", reference)
    assert compare_outputs("y", reference, candidate, tolerance).verdict is Verdict(verdict)


def test_a_flip_beyond_the_tolerance_is_named_with_its_gap() -> None:
    reference, candidate = np.array([[1.0, 0.5, 0.0]]), np.array([[0.6, 0.9, 0.0]])
    comparison = compare_outputs("logits", reference, candidate, GIVEN)
    assert comparison.metrics.argmax_flips == 1
    assert "prefers its own by up to 0.5" in " | ".join(comparison.reasons)


def test_families_are_not_compared_across() -> None:
    comparison = compare_outputs("ids", np.array([1, 2]), np.array([1.0, 2.0]), GIVEN)
    assert comparison.verdict is Verdict.FAIL
    assert comparison.reasons[0] == "the reference holds integer values, the candidate float"


def test_failures_come_before_notes() -> None:
    reference = np.ones((2, 2), np.float32)
    comparison = compare_outputs("y", reference, (reference * 2).astype(np.float16), GIVEN)
    assert "outside the tolerance" in comparison.reasons[0]
    assert "element type" in comparison.reasons[1]


def test_nothing_compared_is_a_failure() -> None:
    comparison = OutputComparator("y", GIVEN, ComparisonRules()).finish()
    assert comparison.verdict is Verdict.FAIL
    assert comparison.reasons == ("no sample was compared",)


def test_a_small_part_of_an_output_may_not_be_wrong_without_a_noise_floor() -> None:
    rng = np.random.default_rng(0)
    reference = rng.random((1, 8, 500)).astype(np.float32)
    reference[:, :4] *= 600
    candidate = reference.copy()
    candidate[:, 4:] = rng.random((1, 4, 500))
    tolerance = make_recipe_tolerance(RECIPES["fp16"], OutputKind.GENERIC)
    comparison = compare_outputs("output0", reference, candidate, tolerance)
    assert comparison.metrics.relative_l2 is not None
    assert comparison.metrics.relative_l2 < 2e-3
    assert comparison.verdict is Verdict.FAIL
    assert "of its slices" in comparison.reasons[0]


def test_indices_that_honest_runs_change_too_pass_with_a_note() -> None:
    rng = np.random.default_rng(0)
    reference = rng.integers(0, 9, 1000)
    candidate, outcome = reference.copy(), reference.copy()
    candidate[:30] += 1
    outcome[500:520] += 1
    rules = ComparisonRules(expect_emulation(dict, RECIPES["fp16"]))
    exact = Tolerance(0.0, 0.0, None, scaled=False, origin="exact")
    near = compare_outputs("ids", reference, candidate, exact, outcomes=[outcome], rules=rules)
    assert near.verdict is Verdict.PASS
    assert "rounding alone changes 2.00% of them" in near.reasons[0]
    far = compare_outputs("ids", reference, reference + 1, exact, outcomes=[outcome], rules=rules)
    assert far.verdict is Verdict.FAIL


def test_a_reference_that_never_changes_is_noted() -> None:
    comparator = OutputComparator("y", GIVEN, ComparisonRules())
    for _ in range(2):
        comparator.add(np.ones((1, 5)), np.ones((1, 5)))
    comparison = comparator.finish()
    assert comparison.verdict is Verdict.PASS
    assert "hardly changes from sample to sample" in comparison.reasons[0]


def test_findings_only_make_it_worse() -> None:
    passed = compare_outputs("y", BASE, BASE, GIVEN)
    failed = with_finding(passed, Verdict.FAIL, "row missing")
    assert failed.verdict is Verdict.FAIL
    assert with_finding(failed, Verdict.PASS, "note").reasons == ("row missing", "note")
    assert replace(passed).verdict is Verdict.PASS
