"""Outputs whose rows have no fixed order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtdeploy.core.errors import UsageError
from trtdeploy.parity.rows import MAX_ROWS, forgive_tied_indices, match_rows

BOXES = np.array([[10, 10, 50, 50], [300, 20, 90, 40], [7, 400, 60, 80]], np.float32)
SCORES = np.array([0.9, 0.8, 0.7], np.float32)
CLASSES = np.array([3, 0, 3])


def detect(order: list[int], noise: float = 0.0) -> dict[str, np.ndarray]:
    boxes = BOXES[order] + np.float32(noise)
    return {"boxes": boxes, "scores": SCORES[order], "classes": CLASSES[order]}


@given(st.permutations([0, 1, 2]), st.floats(-2, 2))
def test_any_order_is_put_back(order: list[int], noise: float) -> None:
    matched = match_rows(detect([0, 1, 2]), detect(order, noise))
    assert (matched.missing, matched.extra) == (0, 0)
    assert matched.moved == sum(i != place for place, i in enumerate(order))
    np.testing.assert_allclose(matched.candidate["boxes"], BOXES + noise, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(matched.candidate["classes"], CLASSES)


def test_rows_beyond_the_bound_are_missing_and_extra() -> None:
    other = detect([0, 1, 2])
    other["boxes"][1] += 100
    matched = match_rows(detect([0, 1, 2]), other)
    assert (matched.missing, matched.extra) == (1, 1)
    assert matched.candidate["boxes"].shape == (2, 4)
    assert matched.reference["scores"].tolist() == pytest.approx([0.9, 0.7])


def test_fewer_and_more_rows() -> None:
    fewer = match_rows(detect([0, 1, 2]), detect([2, 0]))
    assert (fewer.missing, fewer.extra) == (1, 0)
    more = match_rows(detect([0, 1]), detect([2, 1, 0]))
    assert (more.missing, more.extra) == (0, 1)
    none = match_rows(detect([0]), {name: a[:0] for name, a in detect([0]).items()})
    assert (none.missing, none.extra) == (1, 0)


def test_one_output_with_all_columns_and_a_batch() -> None:
    rng = np.random.default_rng(0)
    reference = {"y": rng.random((2, 5, 6)).astype(np.float32)}
    candidate = {"y": reference["y"][:, ::-1].copy()}
    matched = match_rows(reference, candidate)
    assert (matched.missing, matched.extra, matched.moved) == (0, 0, 8)
    np.testing.assert_array_equal(matched.candidate["y"], reference["y"].reshape(10, 6))


def test_equally_near_rows_are_told_apart_by_their_integers() -> None:
    boxes = np.ones((2, 4), np.float32)
    reference = {"boxes": boxes, "classes": np.array([1, 2])}
    matched = match_rows(reference, {"boxes": boxes, "classes": np.array([2, 1])})
    assert matched.candidate["classes"].tolist() == [1, 2]


def test_a_class_that_changed_stays_changed() -> None:
    other = detect([1, 0, 2])
    other["classes"][0] = 9
    matched = match_rows(detect([0, 1, 2]), other)
    assert matched.candidate["classes"].tolist() == [3, 9, 3]


def test_identical_padding_rows_match_each_other() -> None:
    padded = {"y": np.vstack([BOXES, np.zeros((97, 4), np.float32)])}
    matched = match_rows(padded, {"y": padded["y"][::-1].copy()})
    assert (matched.missing, matched.extra) == (0, 0)
    np.testing.assert_array_equal(matched.candidate["y"], padded["y"])


def test_other_outputs_are_left_alone() -> None:
    reference = {**detect([0, 1, 2]), "count": np.array(3)}
    matched = match_rows(reference, {**detect([2, 1, 0]), "count": np.array(2)})
    assert matched.names == ("boxes", "scores", "classes")
    assert matched.candidate["count"] == 2
    vector = {"y": np.array([1.0, 2.0])}
    assert match_rows(vector, vector).names == ()


def test_too_many_rows_are_refused() -> None:
    many = {"y": np.zeros((MAX_ROWS + 1, 2), np.float32)}
    with pytest.raises(UsageError, match="cannot be matched by value"):
        match_rows(many, many)


def test_nan_rows_have_no_partner() -> None:
    other = detect([0, 1, 2])
    other["boxes"][0, 0] = np.nan
    assert match_rows(detect([0, 1, 2]), other).missing == 1


def make_top(values: list[float], indices: list[int]) -> dict[str, np.ndarray]:
    return {"values": np.array([values], np.float32), "indices": np.array([indices])}


@pytest.mark.parametrize(
    ("indices", "forgiven"),
    [
        ([7, 4, 9], 0),
        ([4, 7, 9], 2),  # tied values in another order
        ([7, 4, 1], 1),  # another index at the tied end of the list
        ([9, 4, 7], 0),  # 0.5 and 0.9 are no tie
        ([7, 1, 9], 0),  # an index that has no business in the middle
    ],
)
def test_indices_of_tied_values(indices: list[int], forgiven: int) -> None:
    reference = make_top([0.9, 0.9, 0.5], [7, 4, 9])
    candidate = make_top([0.9, 0.9, 0.5], indices)
    changed, count = forgive_tied_indices(reference, candidate, slack=1e-3)
    assert count == forgiven
    if forgiven:
        np.testing.assert_array_equal(changed["indices"], reference["indices"])


def test_indices_without_values_are_not_forgiven() -> None:
    reference = {"indices": np.array([[1, 2]])}
    _, count = forgive_tied_indices(reference, {"indices": np.array([[2, 1]])}, slack=1.0)
    assert count == 0
