"""Sums per slice and segment."""

from __future__ import annotations

import numpy as np
import pytest

from trtdeploy.parity.slices import MAX_SLICES, SliceSums, make_views


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((4, 84, 525), [1, 2]),
        ((4, 84, 8400), [1]),
        ((4, 1000), [1]),
        ((84, 8400), [0]),
        ((7,), [0]),
        ((2, 21, 64, 64), [1]),
        ((2, 1, 64, 64), [1]),
        ((1, 1), []),
        ((), []),
        ((0, 4), []),
        ((1, MAX_SLICES + 1), []),
    ],
)
def test_views(shape: tuple[int, ...], axes: list[int]) -> None:
    assert [view.axis for view in make_views(shape)] == axes


def test_sums_are_those_of_the_slices() -> None:
    values = np.random.default_rng(0).random((3, 5, 40))
    sums = SliceSums(1)
    sums.start(values.shape)
    flat = values.reshape(-1)
    for start in range(0, flat.size, 37):
        sums.add(start, [flat[start : start + 37]])
    (view, by_channel), (other, by_position) = sums.read()
    assert (view.axis, view.segments, other.axis, other.segments) == (1, 16, 2, 5)
    np.testing.assert_allclose(by_channel[0].sum(axis=1), values.sum(axis=(0, 2)))
    np.testing.assert_allclose(by_position[0].sum(axis=1), values.sum(axis=(0, 1)))
    first = values[:, :, : 40 // 16 + 1].sum(axis=(0, 2))
    np.testing.assert_allclose(by_channel[0, :, 0], first)


def test_a_smaller_last_batch_goes_into_the_same_sums() -> None:
    values = np.random.default_rng(0).random((5, 4, 3))
    whole, parts = SliceSums(1), SliceSums(1)
    for sums, pieces in ((whole, [values]), (parts, [values[:3], values[3:]])):
        for piece in pieces:
            sums.start(piece.shape)
            sums.add(0, [piece.reshape(-1)])
    for (_, a), (_, b) in zip(whole.read(), parts.read(), strict=True):
        np.testing.assert_allclose(a, b)


def test_outputs_of_another_size_end_the_sums() -> None:
    sums = SliceSums(1)
    sums.start((1, 4, 3))
    sums.start((1, 5, 3))
    assert sums.read() == ()
