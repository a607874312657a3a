from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtdeploy.core.dtypes import DType
from trtdeploy.core.errors import ModelFileError
from trtdeploy.graph import weights
from trtdeploy.graph.channels import ChannelLayout
from trtdeploy.graph.quantized_weights import ChannelFactors, WeightQuantization
from trtdeploy.graph.weights import Span, StoredWeight, WeightRange, measure_range

NARROW = {DType.FLOAT16: np.float16, DType.BFLOAT16: ml_dtypes.bfloat16}

# signed zeros, subnormals of both types, the smallest normals, ties, the last value that rounds to
# the largest finite FP16 and the first that overflows, the largest float, infinities
CORNERS = [
    0.0, -0.0, 1e-45, 2.0**-149, 2.0**-25, 2.0**-24, 1.5 * 2.0**-24, 2.0**-14, 2.0**-126, 1.0,
    1.0 + 2.0**-11, 1.0 + 3 * 2.0**-11, 1.0 + 2.0**-8, 1.0 + 3 * 2.0**-9, 65504.0, 65519.99,
    65520.0, 1e12, 3.3961775e38, 3.4028235e38, np.inf, -np.inf,
]  # fmt: skip


def store(path: Path, values: np.ndarray[Any, Any], *, before: bytes = b"") -> Span:
    path.write_bytes(before + values.tobytes() + b"after")
    return Span(path, len(before), values.nbytes)


def read(weight: StoredWeight) -> bytes:
    return b"".join(bytes(chunk) for chunk in weight.iterate_bytes())


@pytest.fixture(params=[4, 12, 1 << 20], ids=lambda size: f"chunk{size}")
def _chunk_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "CHUNK_BYTES", request.param)


@pytest.mark.usefixtures("_chunk_bytes")
@pytest.mark.parametrize("dtype", NARROW, ids=lambda d: d.label)
def test_conversion_is_numpys_bit_for_bit(dtype: DType, tmp_path: Path) -> None:
    values = np.array([*CORNERS, *(-x for x in CORNERS)], np.float32)
    weight = StoredWeight(store(tmp_path / "w", values, before=b"xyz"), DType.FLOAT32, dtype)
    with np.errstate(over="ignore"):
        assert read(weight) == values.astype(NARROW[dtype]).tobytes()
    assert weight.stored_bytes == values.nbytes // 2


@pytest.mark.parametrize("dtype", NARROW, ids=lambda d: d.label)
def test_not_a_number_stays_one(dtype: DType, tmp_path: Path) -> None:
    bits = np.array([0x7FC00000, 0xFFC00000, 0x7F800001, 0x7FFFFFFF], np.uint32)
    weight = StoredWeight(store(tmp_path / "w", bits.view(np.float32)), DType.FLOAT32, dtype)
    assert np.isnan(np.frombuffer(read(weight), NARROW[dtype]).astype(np.float32)).all()


@given(st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=40))
@pytest.mark.parametrize("dtype", NARROW, ids=lambda d: d.label)
def test_any_value_converts_as_numpy_does(
    dtype: DType, tmp_path_factory: pytest.TempPathFactory, values: list[float]
) -> None:
    array = np.array(values, np.float32)
    span = store(tmp_path_factory.getbasetemp() / "any_value", array)
    with np.errstate(over="ignore"):
        expected = array.astype(NARROW[dtype]).tobytes()
    assert read(StoredWeight(span, DType.FLOAT32, dtype)) == expected


@pytest.mark.usefixtures("_chunk_bytes")
@pytest.mark.parametrize("dtype", [DType.INT64, DType.INT4, DType.FLOAT8E4M3FN])
def test_other_types_are_copied(dtype: DType, tmp_path: Path) -> None:
    values = np.arange(64, dtype=np.uint8)
    weight = StoredWeight(store(tmp_path / "w", values), dtype, dtype)
    assert read(weight) == values.tobytes()
    assert weight.stored_bytes == 64


def test_rounding_leaves_the_callers_error_state_alone(tmp_path: Path) -> None:
    span = store(tmp_path / "w", np.array([1e9, 1e9], np.float32))
    before = np.geterr()
    for _ in StoredWeight(span, DType.FLOAT32, DType.FLOAT16).iterate_bytes():
        assert np.geterr() == before


@pytest.mark.parametrize("cut", [1, 4, 12])
def test_a_file_that_shrank_is_an_error(cut: int, tmp_path: Path) -> None:
    span = store(tmp_path / "w", np.ones(3, np.float32))
    (tmp_path / "w").write_bytes((tmp_path / "w").read_bytes()[: 12 - cut])
    with pytest.raises(ModelFileError, match="became shorter"):
        read(StoredWeight(span, DType.FLOAT32, DType.FLOAT16))


def test_a_file_that_disappeared_is_an_error(tmp_path: Path) -> None:
    span = store(tmp_path / "w", np.ones(3, np.float32))
    (tmp_path / "w").unlink()
    with pytest.raises(ModelFileError, match="cannot be read: No such file"):
        read(StoredWeight(span, DType.FLOAT32, DType.FLOAT32))


SCALED = np.random.default_rng(3).normal(size=(6, 5, 7)).astype(np.float32)
FACTORS = np.array([1e-3, -2.0, 0.0, 3.0, 1e3])


def scaled(folder: Path, factors: np.ndarray[Any, Any] = FACTORS) -> StoredWeight:
    weight = StoredWeight(store(folder / "w", SCALED), DType.FLOAT32, DType.FLOAT32)
    found = weight.scale(ChannelFactors(factors, ChannelLayout.along(SCALED.shape, 1)))
    assert found is not None
    return found


@pytest.mark.usefixtures("_chunk_bytes")
def test_factors_scale_by_channel_in_double_precision(tmp_path: Path) -> None:
    expected = (SCALED.astype(np.float64) * FACTORS[:, None]).astype(np.float32)
    weight = scaled(tmp_path)
    assert read(weight) == expected.tobytes()
    assert np.concatenate(list(weight.iterate_arrays())).tobytes() == expected.tobytes()
    narrow = replace(weight, stored_as=DType.FLOAT16)
    assert read(narrow) == expected.astype(np.float16).tobytes()
    assert read(narrow.widen()) == expected.astype(np.float16).astype(np.float32).tobytes()


def test_factors_multiply(tmp_path: Path) -> None:
    layout = ChannelLayout.along(SCALED.shape, 1)
    twice = scaled(tmp_path).scale(ChannelFactors(FACTORS, layout))
    assert twice is not None
    assert read(twice) == read(scaled(tmp_path, FACTORS * FACTORS))


def test_what_cannot_be_scaled_while_streamed(tmp_path: Path) -> None:
    weight = scaled(tmp_path)
    other = ChannelFactors(np.ones(6), ChannelLayout.along(SCALED.shape, 0))
    assert weight.scale(other) is None
    plain = replace(weight, factors=None)
    assert plain.scale(other) is not None
    assert replace(plain, stored_as=DType.FLOAT16).scale(other) is None
    assert replace(plain, dtype=DType.FLOAT16).scale(other) is None


@pytest.mark.usefixtures("_chunk_bytes")
def test_quantization_follows_the_factors(tmp_path: Path) -> None:
    layout = ChannelLayout.along(SCALED.shape, 0)
    scales = np.full(6, 0.5, np.float32)
    quantized = scaled(tmp_path).quantize(WeightQuantization(scales, layout, DType.INT8, 127))
    values = (SCALED.astype(np.float64) * FACTORS[:, None]).astype(np.float32)
    assert read(quantized) == np.rint(values / 0.5).clip(-127, 127).astype(np.int8).tobytes()
    assert quantized.stored_bytes == SCALED.size
    assert quantized.widen() is quantized


def chunks(*values: list[float], dtype: type = np.float32) -> Iterator[np.ndarray[Any, Any]]:
    return (np.array(chunk, dtype) for chunk in values)


@pytest.mark.parametrize(
    ("given_chunks", "expected"),
    [
        (chunks([1, -3], [2]), WeightRange(3, -3, 2, has_nan=False, has_inf=False)),
        (chunks([5, 6], [7]), WeightRange(7, 5, 7, has_nan=False, has_inf=False)),
        (chunks(), WeightRange(0, 0, 0, has_nan=False, has_inf=False)),
        (chunks([], [0]), WeightRange(0, 0, 0, has_nan=False, has_inf=False)),
        (chunks([np.inf, 2], [1]), WeightRange(2, 1, 2, has_nan=False, has_inf=True)),
        (chunks([np.nan], [-np.inf]), WeightRange(0, 0, 0, has_nan=True, has_inf=True)),
        (chunks([np.nan, -8]), WeightRange(8, -8, -8, has_nan=True, has_inf=False)),
        (chunks([60000, 60000], dtype=np.float16), WeightRange(60000, 60000, 60000, False, False)),
        (chunks([1e300], dtype=np.float64), WeightRange(1e300, 1e300, 1e300, False, False)),
    ],
)
def test_ranges(given_chunks: Iterator[np.ndarray[Any, Any]], expected: WeightRange) -> None:
    with np.errstate(invalid="ignore"):
        found = measure_range(given_chunks)
    assert found.amax == pytest.approx(expected.amax, rel=1e-3)
    assert (found.has_nan, found.has_inf) == (expected.has_nan, expected.has_inf)
    assert found.smallest == pytest.approx(expected.smallest, rel=1e-3)
    assert found.largest == pytest.approx(expected.largest, rel=1e-3)
