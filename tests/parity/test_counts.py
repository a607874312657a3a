"""Equality of everything that is not a floating-point number."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtdeploy.parity.counts import find_equal, find_family, measure_largest_gap
from trtdeploy.parity.slices import is_float

INT64 = st.integers(-(2**63), 2**63 - 1)


@pytest.mark.parametrize(
    ("dtype", "family"),
    [
        (np.float16, "float"),
        (np.float64, "float"),
        (ml_dtypes.bfloat16, "float"),
        (ml_dtypes.float8_e4m3fn, "float"),
        (ml_dtypes.float8_e5m2, "float"),
        (np.uint8, "integer"),
        (np.int64, "integer"),
        (ml_dtypes.int4, "integer"),
        (ml_dtypes.uint4, "integer"),
        (np.bool_, "boolean"),
        (np.complex64, "complex"),
        (np.object_, "text"),
        ("<U3", "text"),
    ],
)
def test_families(dtype: type, family: str) -> None:
    array = np.zeros(2, dtype)
    assert find_family(array) == family
    assert is_float(array) == (family == "float")


def test_large_integers_are_told_apart() -> None:
    assert not find_equal(np.array([2**53 + 1]), np.array([2**53])).any()
    assert measure_largest_gap(np.array([2**53 + 1]), np.array([2**53])) == 1


def test_unsigned_differences_do_not_wrap() -> None:
    a, b = np.array([0, 255], np.uint8), np.array([255, 0], np.uint8)
    assert not find_equal(a, b).any()
    assert measure_largest_gap(a, b) == 255


def test_a_negative_is_not_its_unsigned_twin() -> None:
    a, b = np.array([-1, 5], np.int64), np.array([2**64 - 1, 5], np.uint64)
    assert find_equal(a, b).tolist() == [False, True]
    assert find_equal(b, a).tolist() == [False, True]
    assert measure_largest_gap(a, b) == 2**64


def test_text_and_booleans() -> None:
    words = np.array(["cat", "dog"], object)
    assert find_equal(words, np.array(["cat", "dot"], object)).tolist() == [True, False]
    assert find_equal(np.array([True, False]), np.array([True, True])).tolist() == [True, False]


def test_integers_of_different_width() -> None:
    a = np.array([1, -2], np.int64)
    assert find_equal(a, a.astype(np.int32)).all()
    assert find_equal(np.array([3], ml_dtypes.int4), np.array([3], np.int8)).all()


def test_empty_and_scalar() -> None:
    assert measure_largest_gap(np.zeros((0, 3), int), np.zeros((0, 3), int)) == 0
    assert find_equal(np.array(7), np.array(7)).all()


@given(st.lists(st.tuples(INT64, INT64), min_size=1, max_size=20))
def test_integers_agree_with_python(pairs: list[tuple[int, int]]) -> None:
    a = np.array([first for first, _ in pairs], np.int64)
    b = np.array([second for _, second in pairs], np.int64)
    assert find_equal(a, b).tolist() == [x == y for x, y in pairs]
    assert measure_largest_gap(a, b) == max(abs(x - y) for x, y in pairs)
