from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from trtdeploy.core.dtypes import DType
from trtdeploy.core.number_formats import (
    FP8_E4M3,
    FP8_E5M2,
    INT8,
    QUANTIZED_TYPES,
    QuantizedType,
)
from trtdeploy.graph.channels import ChannelLayout
from trtdeploy.graph.quantized_weights import WeightQuantization, quantize_values
from trtdeploy.precision.quantization.scales import compute_scales

NUMPY = {
    DType.FLOAT16: np.dtype(np.float16),
    DType.BFLOAT16: np.dtype(ml_dtypes.bfloat16),
    DType.FLOAT32: np.dtype(np.float32),
}
SMALLEST = {DType.FLOAT16: 2.0**-24, DType.BFLOAT16: 2.0**-126, DType.FLOAT32: 2.0**-126}
LARGEST = {dtype: float(ml_dtypes.finfo(NUMPY[dtype]).max) for dtype in NUMPY}
# half the distance between neighbours, relative to the value, and absolute below the normal ones
HALF_STEP = {"fp8": (2.0**-4, 2.0**-10), "fp8-e5m2": (2.0**-3, 2.0**-17)}

any_kind = st.sampled_from(list(QUANTIZED_TYPES.values()))
any_scale_type = st.sampled_from(list(NUMPY))
any_amax = st.floats(0, 1e300, allow_nan=False)


@given(
    arrays(np.float64, array_shapes(max_dims=2, max_side=4), elements=any_amax),
    any_kind,
    any_scale_type,
)
def test_scales_are_positive_finite_and_of_their_type(
    amax: np.ndarray[Any, Any], kind: QuantizedType, scale_type: DType
) -> None:
    scales = compute_scales(amax, kind, scale_type)
    assert scales.shape == amax.shape
    assert scales.dtype == np.float32
    assert np.array_equal(scales.astype(NUMPY[scale_type]).astype(np.float32), scales)
    assert (scales >= SMALLEST[scale_type]).all()
    assert (scales <= LARGEST[scale_type]).all()


@given(st.floats(2.0**-100, 1e30), any_kind, any_scale_type)
def test_a_scale_is_the_smallest_that_does_not_saturate(
    amax: float, kind: QuantizedType, scale_type: DType
) -> None:
    scale = float(compute_scales(np.array(amax), kind, scale_type))
    below = np.nextafter(np.array(scale, NUMPY[scale_type]), np.array(0, NUMPY[scale_type]))
    assert scale * kind.max >= amax or scale == LARGEST[scale_type]
    assert float(below) * kind.max < amax or scale == SMALLEST[scale_type]


@given(any_amax.filter(bool), any_amax.filter(bool), any_kind, any_scale_type)
def test_a_wider_amax_never_gets_a_smaller_scale(
    first: float, second: float, kind: QuantizedType, scale_type: DType
) -> None:
    low, high = compute_scales(np.sort([first, second]), kind, scale_type)
    assert low <= high


@pytest.mark.parametrize("scale_type", NUMPY, ids=lambda d: d.label)
@pytest.mark.parametrize("kind", QUANTIZED_TYPES.values(), ids=lambda k: k.name)
def test_a_dead_range_counts_as_one(kind: QuantizedType, scale_type: DType) -> None:
    scales = compute_scales(np.array([0.0, 1.0]), kind, scale_type)
    assert scales[0] == scales[1]
    assert np.array_equal(requantize(np.zeros(3, np.float32), scales[0], kind), [0, 0, 0])


@pytest.mark.parametrize(
    ("amax", "scale_type", "expected"),
    [
        (1e-9, DType.FLOAT16, 2.0**-24),
        (1e9, DType.FLOAT16, 65504.0),
        (1e-45, DType.FLOAT32, 2.0**-126),
        (127.0, DType.FLOAT16, 1.0),
        (127.001, DType.FLOAT16, 1 + 2.0**-10),
        (127.001, DType.BFLOAT16, 1 + 2.0**-7),
        (12.7, DType.FLOAT32, 13421773 * 2.0**-27),
    ],
)
def test_known_scales(amax: float, scale_type: DType, expected: float) -> None:
    assert float(compute_scales(np.array(amax), INT8, scale_type)) == expected


@pytest.mark.parametrize("amax", [-1.0, np.nan, np.inf])
def test_what_is_no_amax_is_refused(amax: float) -> None:
    with pytest.raises(ValueError, match="finite and not negative"):
        compute_scales(np.array([1.0, amax]), INT8, DType.FLOAT16)


def test_integer_scales_are_refused() -> None:
    with pytest.raises(ValueError, match="not int32"):
        compute_scales(np.ones(1), INT8, DType.INT32)


def requantize(values: Any, scale: float, kind: QuantizedType) -> np.ndarray[Any, Any]:
    """Return what is left of ``values`` after quantizing them with one scale, in FP64."""
    layout = ChannelLayout(1, np.size(values))
    quantization = WeightQuantization(np.array([scale], np.float32), layout, kind.dtype, kind.max)
    stored = quantize_values(np.asarray(values), quantization, 0)
    return stored.astype(np.float64) * scale


fractions = arrays(np.float64, 8, elements=st.floats(-1, 1))


@given(fractions, st.floats(2.0**-10, 2.0**10), st.sampled_from([DType.FLOAT16, DType.FLOAT32]))
def test_int8_errs_by_half_a_step_at_most(
    fraction: np.ndarray[Any, Any], amax: float, scale_type: DType
) -> None:
    values = (fraction * amax).astype(np.float32)
    scale = float(compute_scales(np.abs(values).max(), INT8, scale_type))
    error = np.abs(values - requantize(values, scale, INT8))
    assert (error <= scale / 2 * (1 + 1e-5)).all()


@given(fractions, st.floats(2.0**-10, 2.0**10), st.sampled_from([FP8_E4M3, FP8_E5M2]))
def test_fp8_errs_by_half_the_distance_of_neighbours_at_most(
    fraction: np.ndarray[Any, Any], amax: float, kind: QuantizedType
) -> None:
    values = (fraction * amax).astype(np.float32)
    scale = float(compute_scales(np.abs(values).max(), kind, DType.FLOAT16))
    relative, absolute = HALF_STEP[kind.name]
    bound = np.maximum(np.abs(values) * relative, absolute * scale) * (1 + 1e-5)
    assert (np.abs(values - requantize(values, scale, kind)) <= bound).all()
