from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtdeploy.graph.channels import ChannelLayout

layouts = st.builds(ChannelLayout, st.integers(1, 7), st.integers(1, 9))
cuts = st.lists(st.integers(1, 40), min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("axis", "expected"),
    [
        (None, ChannelLayout(1, 60)),
        (0, ChannelLayout(3, 20)),
        (1, ChannelLayout(4, 5)),
        (-1, ChannelLayout(5, 1)),
        (-3, ChannelLayout(3, 20)),
    ],
)
def test_layouts(axis: int | None, expected: ChannelLayout) -> None:
    assert ChannelLayout.along([3, 4, 5], axis) == expected


@pytest.mark.parametrize("axis", [3, -4])
def test_an_axis_that_is_not_there_is_refused(axis: int) -> None:
    with pytest.raises(ValueError, match=f"axis {axis} of a tensor with 3 dimensions"):
        ChannelLayout.along([3, 4, 5], axis)


@given(layouts, cuts)
def test_any_cut_spreads_like_the_whole(layout: ChannelLayout, sizes: list[int]) -> None:
    values = np.random.default_rng(1).normal(size=layout.channels)
    total = sum(sizes)
    whole = values[np.arange(total) // layout.run % layout.channels]
    starts = np.cumsum([0, *sizes])
    pieces = zip(starts[:-1], sizes, strict=True)
    parts = [layout.spread(values, int(start), size) for start, size in pieces]
    assert np.array_equal(np.concatenate(parts), whole)


@given(layouts, cuts)
def test_any_cut_finds_the_largest(layout: ChannelLayout, sizes: list[int]) -> None:
    total = sum(sizes)
    magnitudes = np.random.default_rng(2).random(total).astype(np.float32)
    channels = np.arange(total) // layout.run % layout.channels
    expected = [magnitudes[channels == c].max(initial=0) for c in range(layout.channels)]
    found = np.zeros(layout.channels, np.float32)
    start = 0
    for size in sizes:
        part = layout.find_largest(magnitudes[start : start + size], start)
        found = np.maximum(found, part)
        start += size
    assert np.array_equal(found, expected)
