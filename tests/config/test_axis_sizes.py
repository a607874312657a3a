"""Roles of dynamic axes, and sizes that are always in order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtdeploy.config.axis_roles import (
    ASSUMED_SIZES,
    AxisRole,
    complete_sizes,
    find_default,
    find_dynamic_axes,
)
from trtdeploy.config.shape_table import AxisDefaults, AxisRange, AxisSizes
from trtdeploy.core.dtypes import DType
from trtdeploy.core.tensors import Shape, TensorSpec

ROLES = st.sampled_from(sorted(ASSUMED_SIZES))


def find_roles(shape: Shape, dtype: DType = DType.FLOAT32) -> dict[str, str]:
    return {axis.symbol: axis.role for axis in find_dynamic_axes([TensorSpec("x", dtype, shape)])}


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (("N", 3, "H", "W"), {"N": "batch", "H": "height", "W": "width"}),
        (("batch", 3, "height", "width"), {"batch": "batch", "height": "height", "width": "width"}),
        (("?0", 3, "?1", "?2"), {"?0": "batch", "?1": "height", "?2": "width"}),
        (("?0", "?1", "?2", 3), {"?0": "batch", "?1": "height", "?2": "width"}),
        (
            ("DynamicDimension.0", 3, 48, "DynamicDimension.1"),
            {"DynamicDimension.0": "batch", "DynamicDimension.1": "width"},
        ),
        (("?0", 64, "?1", "?2"), {"?0": "batch", "?1": "other", "?2": "other"}),
        ((2, "batch_size", 128), {"batch_size": "batch"}),
        (("seq_len", 16), {"seq_len": "sequence"}),
        (("S", 16), {"S": "sequence"}),
        (("unk__214", 2048), {"unk__214": "batch"}),
        ((1, "past_sequence_length + 1", 8, 64), {"past_sequence_length + 1": "sequence"}),
        (("?0", "?1", 16), {"?0": "batch", "?1": "sequence"}),
        ((1, "n_pos"), {"n_pos": "other"}),
        (("b", "n", 3), {"b": "batch", "n": "other"}),
        (("n", "b", 3), {"n": "batch", "b": "other"}),
        (("batch", "N"), {"batch": "batch", "N": "other"}),
        (("T", "N", 3), {"T": "sequence", "N": "batch"}),
        ((1, "num_boxes", 4), {"num_boxes": "sequence"}),
    ],
)
def test_role_of_an_axis(shape: Shape, expected: dict[str, str]) -> None:
    assert find_roles(shape) == expected


def test_token_ids_have_a_sequence() -> None:
    assert find_roles(("?0", "?1"), DType.INT64) == {"?0": "batch", "?1": "sequence"}
    assert find_roles(("?0", "?1")) == {"?0": "batch", "?1": "other"}


def test_name_decides_before_position_and_symbols_are_tied() -> None:
    inputs = [
        TensorSpec("tokens", DType.FLOAT32, ("B", "S", 16)),
        TensorSpec("pos", DType.FLOAT32, ("S", 16)),
    ]
    batch, sequence = find_dynamic_axes(inputs)
    assert (batch.role, sequence.role) == ("batch", "sequence")
    assert sequence.label == "'S' (tokens axis 1, pos axis 0)"


def test_unnamed_axes_are_never_tied() -> None:
    axes = find_dynamic_axes([TensorSpec("x", DType.FLOAT32, ("?", 3, "?", "?"))])
    assert [axis.role for axis in axes] == ["batch", "height", "width"]


@given(
    role=ROLES,
    points=st.lists(st.integers(1, 5000), min_size=3, max_size=3).map(sorted),
    kept=st.sets(st.sampled_from(["min", "opt", "max"]), min_size=1),
)
def test_completed_sizes_are_in_order(role: AxisRole, points: list[int], kept: set[str]) -> None:
    sizes = dict(zip(("min", "opt", "max"), points, strict=True))
    partial = AxisSizes.model_validate({point: sizes[point] for point in kept})
    complete = complete_sizes(partial, ASSUMED_SIZES[role], role)
    assert 1 <= complete.min <= complete.opt <= complete.max
    assert all(getattr(complete, point) == sizes[point] for point in kept)


@given(role=ROLES, largest=st.integers(1, 5000))
def test_default_with_one_point_is_in_order(role: AxisRole, largest: int) -> None:
    defaults = AxisDefaults.model_validate({role: {"max": largest}})
    sizes = find_default(role, defaults)
    assert 1 <= sizes.min <= sizes.opt <= sizes.max == largest


@pytest.mark.parametrize(
    ("opt", "expected"),
    [(640, AxisRange(320, 640, 1280)), (224, AxisRange(96, 224, 448)), (32, AxisRange(32, 32, 64)),
     (100, AxisRange(50, 100, 200)), (1, AxisRange(1, 1, 2))],
)  # fmt: skip
def test_lone_image_size_spreads_in_steps_of_32(opt: int, expected: AxisRange) -> None:
    assert complete_sizes(AxisSizes(opt=opt), ASSUMED_SIZES["height"], "height") == expected


def test_lone_batch_size_keeps_the_default_ends() -> None:
    default = AxisRange(1, 4, 8)
    assert complete_sizes(AxisSizes(opt=2), default, "batch") == AxisRange(1, 2, 8)
    assert complete_sizes(AxisSizes(opt=16), default, "batch") == AxisRange(1, 16, 16)
