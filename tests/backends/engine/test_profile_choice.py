"""The choice of an optimization profile depends on sizes alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtdeploy.backends.engine.profile_choice import ProfileChoice
from trtdeploy.core.errors import FeedError
from trtdeploy.core.ranges import OptimizationProfile, ShapeRange, ValueRange


def make_profile(low: int, high: int, name: str = "p") -> OptimizationProfile:
    return OptimizationProfile(name, {"x": ShapeRange((low,), (low,), (high,))})


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=4),
    st.lists(st.integers(0, 8), min_size=1, max_size=6),
)
def test_the_smallest_that_fits(bounds: list[tuple[int, int]], sizes: list[int]) -> None:
    ranges = [(min(pair), max(pair)) for pair in bounds]
    choice = ProfileChoice([make_profile(*pair) for pair in ranges])
    for size in sizes:
        fitting = [high for low, high in ranges if low <= size <= high]
        if not fitting:
            with pytest.raises(FeedError, match="no optimization profile"):
                choice.choose({"x": (size,)}, {})
            continue
        low, high = ranges[choice.choose({"x": (size,)}, {})]
        assert low <= size <= high == min(fitting)


def test_equals_are_taken_in_order() -> None:
    choice = ProfileChoice([make_profile(3, 4), make_profile(1, 4), make_profile(1, 4)])
    assert [choice.choose({"x": (size,)}, {}) for size in (4, 1)] == [0, 1]


def test_more_sizes_than_are_remembered() -> None:
    choice = ProfileChoice([make_profile(0, 1000)])
    assert {choice.choose({"x": (size,)}, {}) for size in range(600)} == {0}


def test_values_decide_too() -> None:
    shapes = {"size": ShapeRange((2,), (2,), (2,))}
    profiles = [
        OptimizationProfile("a", shapes, {"size": ValueRange((1, 1), (1, 1), (4, 4))}),
        OptimizationProfile("b", shapes, {"size": ValueRange((5, 5), (5, 5), (9, 9))}),
    ]
    choice = ProfileChoice(profiles)
    assert choice.choose({"size": (2,)}, {"size": (4, 4)}) == 0
    assert choice.choose({"size": (2,)}, {"size": (5, 9)}) == 1
    with pytest.raises(FeedError) as info:
        choice.choose({"size": (2,)}, {"size": (4, 5)})
    assert "0 (a): value 1 of 'size' is 5, and it takes 1 to 4" in str(info.value)
    assert "1 (b): value 0 of 'size' is 4, and it takes 5 to 9" in str(info.value)
    assert "--value" in info.value.hint
