"""The histogram: exact, and the same whatever the order and the split."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtdeploy.calibration.histogram import (
    FINITE_BINS,
    MagnitudeHistogram,
    find_bins,
    find_edges,
    is_finite,
)

FLOATS = st.floats(width=32, allow_nan=True, allow_infinity=True)
VALUES = st.lists(FLOATS, max_size=40)


def count(*parts: Any) -> MagnitudeHistogram:
    histogram = MagnitudeHistogram()
    for part in parts:
        histogram.add(np.asarray(part, np.float32))
    return histogram


@given(VALUES)
def test_counts_are_those_of_single_values(values: list[float]) -> None:
    finite = [value for value in values if math.isfinite(value)]
    histogram = count(values)
    assert histogram.count == len(finite)
    assert histogram.nan_count == sum(math.isnan(value) for value in values)
    assert histogram.inf_count == sum(math.isinf(value) for value in values)
    assert histogram.nan_count + histogram.inf_count == len(values) - len(finite)
    assert histogram.largest == max(map(abs, finite), default=0.0)
    assert histogram.is_one_sided == all(value >= 0 for value in finite)
    edges = find_edges(np.arange(FINITE_BINS + 1))
    for position in np.flatnonzero(histogram.counts):
        low, high = edges[position], edges[position + 1]
        inside = sum(low <= abs(value) < high for value in finite)
        assert histogram.counts[position] == inside


@given(VALUES, st.randoms(), st.integers(0, 40))
def test_order_and_split_do_not_matter(values: list[float], random: Any, at: int) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)
    whole = count(values)
    first, second = count(shuffled[:at]), count(shuffled[at:])
    assert count(shuffled[:at], shuffled[at:]) == whole
    first.merge(second)
    assert first == whole


def test_large_arrays_are_counted_like_small_ones() -> None:
    """Arrays above and below the sizes at which the way of counting changes."""
    values = np.random.default_rng(0).normal(size=(3, 200_001)).astype(np.float32)
    whole, pieces = count(values), MagnitudeHistogram()
    for piece in np.array_split(values.ravel(), 97):
        pieces.add(piece)
    assert whole == pieces
    assert whole.count == values.size
    expected = np.bincount(find_bins(np.abs(values.ravel())), minlength=FINITE_BINS)
    np.testing.assert_array_equal(whole.counts, expected)
    assert (whole.minimum, whole.maximum) == (values.min(), values.max())


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_none_in_a_large_array_spoils_nothing_else(bad: float) -> None:
    values = np.random.default_rng(0).normal(size=300_000).astype(np.float32)
    spoiled = np.append(values, np.float32(bad))
    histogram, clean = count(spoiled), count(values)
    assert histogram.nan_count + histogram.inf_count == 1
    np.testing.assert_array_equal(histogram.counts, clean.counts)
    assert histogram.largest == clean.largest
    assert is_finite(values)
    assert not is_finite(spoiled)


def test_layouts_and_types_are_taken_as_they_come() -> None:
    values = np.random.default_rng(0).normal(size=(8, 6)).astype(np.float32)
    expected = count(values)
    for given_as in (values.T, values.astype(np.float64), np.asfortranarray(values), values[::-1]):
        histogram = MagnitudeHistogram()
        histogram.add(given_as)
        assert histogram == expected
    half = MagnitudeHistogram()
    half.add(values.astype(np.float16))
    assert half == count(values.astype(np.float16))
    wide = MagnitudeHistogram()
    wide.add(np.array([1e300, -1.0]))
    assert (wide.inf_count, wide.largest) == (1, 1.0)


def test_nothing_is_a_histogram_too() -> None:
    histogram = count(np.zeros((0, 3)))
    assert (histogram.count, histogram.largest) == (0, 0.0)
    assert (histogram.nan_count, histogram.inf_count) == (0, 0)
    assert count(np.float32(-2.0)).largest == 2.0


def test_bins_cover_every_finite_magnitude() -> None:
    edges = find_edges(np.arange(FINITE_BINS + 1))
    assert (edges[0], edges[-1]) == (0.0, np.inf)
    assert (np.diff(edges) > 0).all()
    normal = edges[:-1] >= np.finfo(np.float32).tiny
    relative = np.diff(edges)[:-1] / edges[:-2].clip(1e-300)
    assert relative[normal[:-1]].max() <= 1 / 128
    np.testing.assert_array_equal(find_bins(edges[:-1]), np.arange(FINITE_BINS))
