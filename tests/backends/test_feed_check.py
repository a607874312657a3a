"""Feeds that do not fit are named with what was expected; feeds that fit cost next to nothing."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from trtdeploy.backends.feed_check import FeedCheck
from trtdeploy.backends.numpy_types import to_numpy_type
from trtdeploy.core.dtypes import DType
from trtdeploy.core.errors import FeedError
from trtdeploy.core.tensors import TensorSpec

IMAGES = TensorSpec("images", DType.FLOAT32, ("batch", 3, "height", 8))
MASK = TensorSpec("mask", DType.BOOL, (2,))
TEXT = TensorSpec("text", DType.STRING, ("n",))
ANY = TensorSpec("any", DType.INT64, None)
NARROW = TensorSpec("narrow", DType.BFLOAT16, ("n",))

GOOD: dict[str, Any] = {
    "images": np.zeros((2, 3, 5, 8), np.float32),
    "mask": np.ones(2, np.bool_),
    "text": np.array(["a", "b"]),
    "any": np.int64([[1]]),
    "narrow": np.zeros(3, ml_dtypes.bfloat16),
}


@pytest.fixture
def check() -> FeedCheck:
    return FeedCheck([IMAGES, MASK, TEXT, ANY, NARROW])


def refuse(check: FeedCheck, **changed: Any) -> str:
    with pytest.raises(FeedError) as info:
        check.check({**GOOD, **changed})
    assert info.value.exit_code == 3
    assert "Nothing is cast" in info.value.hint
    return str(info.value)


def test_feeds_that_fit(check: FeedCheck) -> None:
    check.check(GOOD)
    check.check({**GOOD, "text": np.array(["a"], object), "any": np.zeros((), np.int64)})
    check.check({**GOOD, "images": np.zeros((0, 3, 1, 8), np.float32)})


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("images", np.zeros((1, 3, 5, 8)), "input 'images' must be float32, not float64"),
        ("images", np.zeros((1, 3, 5, 8), ">f4"), "not float32 in foreign byte order"),
        ("images", np.zeros((1, 3, 5, 8), np.float16), "must be float32, not float16"),
        (
            "images",
            np.zeros((3, 5, 8), np.float32),
            "must have rank 4 (batchx3xheightx8), not 3 (3x5x8)",
        ),
        (
            "images",
            np.zeros((1, 4, 5, 8), np.float32),
            "must have 3 on axis 1 (batchx3xheightx8), not 4",
        ),
        ("images", np.zeros((1, 3, 5, 9), np.float32), "must have 8 on axis 3"),
        ("images", None, "must be a numpy array (float32, batchx3xheightx8), not builtins.None"),
        ("mask", np.ones(2, np.uint8), "input 'mask' must be bool, not uint8"),
        ("mask", np.float32(1), "must be a numpy array (bool, 2), not numpy.float32"),
        ("text", np.zeros(2), "input 'text' must be string, not float64"),
        ("any", np.zeros(1, np.int32), "input 'any' must be int64, not int32"),
        ("narrow", np.zeros(3, np.uint16), "input 'narrow' must be bfloat16, not uint16"),
        ("narrow", np.zeros(3, np.float16), "input 'narrow' must be bfloat16, not float16"),
    ],
)
def test_what_does_not_fit_is_named(check: FeedCheck, name: str, value: Any, said: str) -> None:
    assert said in refuse(check, **{name: value})


def test_names_get_the_nearest_suggestion() -> None:
    check = FeedCheck([IMAGES])
    with pytest.raises(FeedError, match=r"no input 'image'\. Did you mean 'images'") as info:
        check.check({"image": GOOD["images"]})
    assert "input 'images' (float32, batchx3xheightx8) is missing; given: 'image'" in str(
        info.value
    )


def test_every_problem_is_in_the_message(check: FeedCheck) -> None:
    text = refuse(check, extra=1, mask=np.ones(3, np.bool_), images=np.zeros((1, 3, 5, 8)))
    assert "no input 'extra'" in text
    assert "'mask' must have 2 on axis 0" in text
    assert "'images' must be float32" in text


def test_no_inputs_at_all() -> None:
    FeedCheck([]).check({})
    with pytest.raises(FeedError, match=r"no input 'x'\. There is nothing to choose from"):
        FeedCheck([]).check({"x": np.zeros(1)})


@pytest.mark.parametrize("dtype", list(DType))
def test_numpy_types_have_the_width_of_the_type(dtype: DType) -> None:
    found = to_numpy_type(dtype)
    if found is None:
        assert dtype.bits < 8 or dtype is DType.FLOAT8E8M0
    else:
        assert found.itemsize * 8 == dtype.bits
