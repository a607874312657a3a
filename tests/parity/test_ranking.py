"""Top-1, top-5, flips and ties."""

from __future__ import annotations

import numpy as np
import pytest

from trtdeploy.parity.ranking import RankingSums


def rank(reference: list[list[float]], candidate: list[list[float]], slack: float) -> RankingSums:
    sums = RankingSums()
    sums.add(np.array(reference), np.array(candidate), np.full(len(reference), slack))
    return sums


def test_a_flip_is_counted_with_the_gap_of_the_reference() -> None:
    sums = rank([[0.1, 5.0, 4.9]], [[0.1, 4.0, 9.0]], 0.01)
    assert (sums.flips, sums.ties) == (1, 0)
    assert sums.largest_gap == pytest.approx(0.1)
    assert sums.top1_agreement == 0.0


def test_a_tie_counts_as_equal() -> None:
    sums = rank([[1.0, 1.0 + 1e-6]], [[1.0 + 1e-6, 1.0]], 1e-3)
    assert (sums.flips, sums.ties) == (0, 1)
    assert sums.largest_tie == pytest.approx(1e-6)
    assert sums.top1_agreement == 1.0


def test_top5_counts_the_overlap() -> None:
    reference = [[9.0, 8, 7, 6, 5, 4, 3, 2]]
    candidate = [[9.0, 8, 7, 6, 1, 2, 5, 4]]
    sums = rank(reference, candidate, 0.0)
    assert sums.top5_agreement == pytest.approx(0.8)
    assert sums.top1_agreement == 1.0


def test_top5_lets_the_fifth_and_a_tied_sixth_swap() -> None:
    reference = [[9.0, 8, 7, 6, 5, 4.999, 0, 0]]
    candidate = [[9.0, 8, 7, 6, 5, 5.001, 0, 0]]
    assert rank(reference, candidate, 0.01).top5_agreement == 1.0
    assert rank(reference, candidate, 0.0).top5_agreement == pytest.approx(0.8)


def test_few_classes_have_no_top5() -> None:
    assert rank([[1.0, 2.0]], [[1.0, 2.0]], 0.0).top5_agreement is None


def test_no_rows() -> None:
    sums = RankingSums()
    sums.add(np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0))
    assert sums.top1_agreement is None
