"""Error sums against the formulas on whole arrays."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from trtdeploy.parity.metrics import (
    CloseCount,
    ErrorSums,
    cosine_similarity,
    relative_l2,
    sqnr_db,
)

finite = hnp.arrays(
    np.float32,
    st.integers(1, 60),
    elements=st.floats(-1e6, 1e6, width=32, allow_subnormal=False),
)


def sum_errors(reference: np.ndarray, candidate: np.ndarray) -> ErrorSums:
    sums = ErrorSums()
    sums.add(reference.astype(np.float64), candidate.astype(np.float64))
    return sums


def test_sums_follow_the_formulas() -> None:
    rng = np.random.default_rng(0)
    reference = rng.standard_normal(1000)
    candidate = reference + rng.normal(0, 0.01, 1000)
    error = candidate - reference
    sums = sum_errors(reference, candidate)
    assert sums.max_abs == np.abs(error).max()
    assert sums.abs_total / sums.elements == pytest.approx(np.abs(error).mean())
    norm = np.linalg.norm
    relative = relative_l2(sums.error_squares, sums.reference_squares)
    assert relative == pytest.approx(norm(error) / norm(reference))
    assert cosine_similarity(
        sums.product, sums.reference_squares, sums.candidate_squares
    ) == pytest.approx(reference @ candidate / norm(reference) / norm(candidate))
    expected = 10 * math.log10((reference**2).sum() / (error**2).sum())
    assert sqnr_db(sums.error_squares, sums.reference_squares) == pytest.approx(expected)


@given(finite, st.integers(0, 60))
def test_any_split_gives_the_same_sums(values: np.ndarray, cut: int) -> None:
    candidate = values * np.float32(1.01)
    whole = sum_errors(values, candidate)
    parts = ErrorSums()
    for piece in (slice(None, cut), slice(cut, None)):
        parts.add(values[piece].astype(np.float64), candidate[piece].astype(np.float64))
    assert parts.elements == whole.elements
    assert parts.max_abs == whole.max_abs
    assert parts.error_squares == pytest.approx(whole.error_squares, rel=1e-12)
    assert parts.to_histogram() == whole.to_histogram()


@given(finite, finite)
def test_errors_are_symmetric_and_the_cosine_is_bounded(a: np.ndarray, b: np.ndarray) -> None:
    size = min(a.size, b.size)
    a, b = a[:size], b[:size]
    one, other = sum_errors(a, b), sum_errors(b, a)
    assert one.max_abs == other.max_abs
    assert one.error_squares == other.error_squares
    cosine = cosine_similarity(one.product, one.reference_squares, one.candidate_squares)
    assert cosine is None or -1.0 <= cosine <= 1.0


@given(finite, st.integers(-20, 20))
def test_relative_figures_do_not_depend_on_the_unit(values: np.ndarray, power: int) -> None:
    reference = values.astype(np.float64)
    candidate = reference * 1.001
    scale = 2.0**power
    plain, scaled = sum_errors(reference, candidate), ErrorSums()
    scaled.add(reference * scale, candidate * scale)
    first = relative_l2(plain.error_squares, plain.reference_squares)
    second = relative_l2(scaled.error_squares, scaled.reference_squares)
    assert first == second or first == pytest.approx(second, rel=1e-12)


def test_figures_without_a_denominator_are_none() -> None:
    assert relative_l2(0.0, 0.0) is None
    assert relative_l2(1.0, 0.0) is None
    assert cosine_similarity(0.0, 0.0, 1.0) is None
    assert sqnr_db(0.0, 1.0) is None
    assert sqnr_db(1.0, 0.0) is None


def test_histogram_counts_decades() -> None:
    sums = sum_errors(np.zeros(6), np.array([0.0, 1e-3, 5e-3, 0.02, -0.02, 3.0]))
    counts, edges = sums.to_histogram()
    assert edges == (-3, -2, -1, 0, 1)
    assert counts == (2, 2, 0, 1)


def test_histogram_holds_every_magnitude() -> None:
    sums = sum_errors(np.zeros(2), np.array([1e-150, 1e150]))
    counts, edges = sums.to_histogram()
    assert sum(counts) == 2
    assert len(edges) == len(counts) + 1


@given(finite, st.floats(0, 10), st.floats(0, 0.5))
def test_close_fraction_is_a_tight_lower_bound(
    values: np.ndarray, atol: float, rtol: float
) -> None:
    reference = values.astype(np.float64)
    candidate = reference + np.linspace(0, 3, reference.size)
    count = CloseCount(rtol)
    count.add(reference, candidate)
    found = count.measure_fraction(atol)
    excess = np.abs(candidate - reference) - rtol * np.abs(reference)
    assert found is not None
    assert found <= (excess <= atol).mean()
    assert found >= (excess <= atol * 2 ** (-1 / 16) * (1 - 1e-9)).mean()


def test_all_close_is_exact() -> None:
    count = CloseCount(0.0)
    count.add(np.zeros(3), np.array([0.1, 0.25, 0.3]))
    assert count.measure_fraction(0.3) == 1.0
    assert count.measure_fraction(0.29999) == pytest.approx(2 / 3)
    assert count.measure_fraction(0.0) == 0.0
    assert CloseCount(0.0).measure_fraction(1.0) is None
