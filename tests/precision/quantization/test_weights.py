from __future__ import annotations

import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto, numpy_helper

from tests.builders import (
    constant,
    external_tensor,
    in_memory,
    loaded,
    model,
    op,
    random_array,
    value,
)
from trtdeploy.core.dtypes import DType
from trtdeploy.core.number_formats import (
    FP8_E4M3,
    INT8,
    QUANTIZED_TYPES,
    QuantizedType,
)
from trtdeploy.graph import weights
from trtdeploy.graph.loading import load_model
from trtdeploy.graph.model import OnnxModel
from trtdeploy.graph.passes.drop_unused_constants import DropUnusedConstantsPass
from trtdeploy.graph.saving import save_model
from trtdeploy.graph.structure import has_same_structure
from trtdeploy.precision.emulation import emulate_model
from trtdeploy.precision.quantization.scales import compute_scales
from trtdeploy.precision.quantization.weights import measure_weight_amax, store_quantized

KINDS = pytest.mark.parametrize("kind", QUANTIZED_TYPES.values(), ids=lambda k: k.name)
SHAPE = (6, 5, 7, 11)
"""Above the 4 KiB up to which weights are in memory, with no factor in common with a chunk."""
AXES = pytest.mark.parametrize("axis", [None, 0, 1, 2, 3, -1, -3])
LARGE = pytest.mark.parametrize("large", [False, True], ids=["in_memory", "on_disk"])


def weight_model(values: np.ndarray[Any, Any]) -> ModelProto:
    """Make ``y = Identity(w)``."""
    tensor = numpy_helper.from_array(values, "w")
    result = value("y", values.shape, tensor.data_type)
    return model([op("Identity", "w", "y")], [], [result], [tensor], opset=21)


def holding(values: np.ndarray[Any, Any], folder: Path, *, large: bool) -> OnnxModel:
    found = loaded(weight_model(values), folder) if large else in_memory(weight_model(values))
    assert bool(found.weights) is large
    return found


def measure(found: OnnxModel, axis: int | None) -> np.ndarray[Any, Any]:
    return measure_weight_amax(found, found.graph.initializer[0], axis)


def store(found: OnnxModel, axis: int | None, kind: QuantizedType) -> np.ndarray[Any, Any]:
    """Add ``q``, the quantized ``w``, and return its scales."""
    scales = compute_scales(measure(found, axis), kind, DType.FLOAT32)
    store_quantized(found, found.graph.initializer[0], "q", scales, axis, kind)
    return scales


def read_back(found: OnnxModel, path: Path) -> np.ndarray[Any, Any]:
    """Return ``q`` as it is after saving the model."""
    save_model(found, path)
    saved = load_model(path)
    tensor = next(t for t in saved.graph.initializer if t.name == "q")
    return np.concatenate(list(saved.iterate_values(tensor))).reshape(tuple(tensor.dims))


def run_quantize_linear(
    values: np.ndarray[Any, Any], scales: np.ndarray[Any, Any], axis: int | None, dtype: DType
) -> np.ndarray[Any, Any]:
    """Return what ONNX Runtime's QuantizeLinear makes of FP32 ``values``, as 8-bit patterns."""
    attributes = {"output_dtype": dtype.code} | ({} if axis is None else {"axis": axis})
    proto = model(
        [
            op("QuantizeLinear", "x s", "q", **attributes),
            op("Cast", "q", "y", to=TensorProto.FLOAT),
        ],
        [value("x", values.shape)],
        [value("y", values.shape)],
        [constant("s", scales[0] if axis is None else scales)],
        opset=21,
    )
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    return session.run(None, {"x": values})[0]


@pytest.fixture(params=[28, 2048, 1 << 24], ids=lambda size: f"chunk{size}")
def _chunk_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "CHUNK_BYTES", request.param)


@pytest.mark.usefixtures("_chunk_bytes")
@LARGE
@AXES
def test_amax_is_the_largest_magnitudes(axis: int | None, large: bool, tmp_path: Path) -> None:
    values = random_array(*SHAPE, seed=1)
    others = tuple(i for i in range(4) if axis is None or i != axis % 4)
    expected = np.atleast_1d(np.abs(values).max(axis=others))
    assert np.array_equal(measure(holding(values, tmp_path, large=large), axis), expected)


@pytest.mark.parametrize(
    ("values", "axis", "expected"),
    [
        ([[1.0, np.nan], [-np.inf, -2.0]], 0, [1, 2]),
        ([[np.nan, np.inf], [0.0, -0.0]], 0, [0, 0]),
        (np.zeros((0, 3)), 1, [0, 0, 0]),
        (np.zeros((3, 0)), 1, []),
        (np.zeros((3, 0)), None, [0]),
        (-3.0, None, [3]),
    ],
)
def test_amax_of_odd_weights(values: Any, axis: int | None, expected: list[float]) -> None:
    found = in_memory(weight_model(np.asarray(values, np.float32)))
    assert measure(found, axis).tolist() == expected


@pytest.mark.parametrize("dtype", [np.float16, np.float64, ml_dtypes.bfloat16])
@LARGE
def test_weights_of_every_float_type(dtype: Any, large: bool, tmp_path: Path) -> None:
    values = random_array(*SHAPE, seed=2).astype(dtype)
    found = holding(values, tmp_path, large=large)
    scales = store(found, 1, INT8)
    wide = values.astype(np.float32)
    expected = np.rint(wide / scales.reshape(-1, 1, 1)).astype(np.int8)
    assert np.array_equal(read_back(found, tmp_path / "out.onnx"), expected)


@pytest.mark.usefixtures("_chunk_bytes")
@KINDS
@LARGE
@AXES
def test_weights_become_what_quantize_linear_makes_of_them(
    axis: int | None, large: bool, kind: QuantizedType, tmp_path: Path
) -> None:
    values = random_array(*SHAPE, seed=3)
    found = holding(values, tmp_path, large=large)
    scales = store(found, axis, kind)
    stored = read_back(found, tmp_path / "out.onnx")
    expected = run_quantize_linear(values, scales, axis, kind.dtype)
    assert np.array_equal(stored.astype(np.float32), expected)


@KINDS
def test_ties_saturation_and_signed_zero(kind: QuantizedType, tmp_path: Path) -> None:
    steps = np.array([0.5, 1.5, 2.5, 1e30, np.inf, 0.0, kind.max, kind.max * 1.03], np.float32)
    steps = np.concatenate([steps, -steps, np.linspace(-500, 500, 999, dtype=np.float32)])
    found = in_memory(weight_model(steps))
    store_quantized(found, found.graph.initializer[0], "q", np.ones(1, np.float32), None, kind)
    stored = read_back(found, tmp_path / "out.onnx").astype(np.float32)
    expected = run_quantize_linear(steps, np.ones(1, np.float32), None, kind.dtype)
    assert np.array_equal(stored, expected.clip(-kind.max, kind.max))
    assert np.array_equal(np.signbit(stored), np.signbit(expected))


@KINDS
def test_a_dead_channel_is_exactly_zero(kind: QuantizedType, tmp_path: Path) -> None:
    values = random_array(3, 4, seed=4)
    values[1] = 0
    found = in_memory(weight_model(values))
    scales = store(found, 0, kind)
    stored = read_back(found, tmp_path / "out.onnx").astype(np.float32)
    assert np.array_equal(stored[1] * scales[1], np.zeros(4))
    assert np.abs(stored[[0, 2]]).max() == kind.max


@given(st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=30), st.data())
def test_any_value_with_any_scale(values: list[float], data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(list(QUANTIZED_TYPES.values())))
    scale = np.float32(data.draw(st.floats(2.0**-24, 65504, width=32)))
    array = np.array(values, np.float32)
    found = in_memory(weight_model(array))
    store_quantized(found, found.graph.initializer[0], "q", scale.reshape(1), None, kind)
    (_, tensor) = found.graph.initializer
    stored = numpy_helper.to_array(tensor).astype(np.float64)
    assert (np.abs(stored) <= kind.max).all()
    inside = np.abs(array) <= float(scale) * kind.max
    step = np.maximum(1, np.abs(stored) / 4) if kind is not INT8 else np.ones(1)
    error = np.abs(stored * scale - array.astype(np.float64))
    assert (error <= step * float(scale) * (0.5 + 1e-4))[inside].all()
    assert np.array_equal(np.sign(stored[~inside]), np.sign(array[~inside]))


def test_not_a_number_is_zero_in_int8_and_stays_in_fp8(tmp_path: Path) -> None:
    ones = np.ones(1, np.float32)
    for kind in (INT8, FP8_E4M3):
        found = in_memory(weight_model(np.array([np.nan, 2], np.float32)))
        store_quantized(found, found.graph.initializer[0], "q", ones, None, kind)
        stored = read_back(found, tmp_path / "out.onnx").astype(np.float32)
        assert np.array_equal(stored, [0 if kind is INT8 else np.nan, 2], equal_nan=True)


def test_a_narrowed_weight_is_quantized_from_its_source(tmp_path: Path) -> None:
    values = random_array(*SHAPE, seed=5)
    found = holding(values, tmp_path, large=True)
    found.weights["w"] = replace(found.weights["w"], stored_as=DType.FLOAT16)
    found.graph.initializer[0].data_type = TensorProto.FLOAT16
    scales = store(found, 0, INT8)
    assert np.array_equal(
        read_back(found, tmp_path / "out.onnx"),
        np.rint(values / scales.reshape(-1, 1, 1, 1)).astype(np.int8),
    )


@KINDS
@pytest.mark.parametrize("single_file_bytes", [0, 1 << 30], ids=["data_file", "one_file"])
def test_saved_weights_are_passed_through(
    kind: QuantizedType, single_file_bytes: int, tmp_path: Path
) -> None:
    found = holding(random_array(64, 80, seed=6), tmp_path, large=True)
    store(found, 0, kind)
    save_model(found, tmp_path / "first.onnx", single_file_bytes=single_file_bytes)
    again = load_model(tmp_path / "first.onnx")
    assert has_same_structure(found, again)
    weight = again.weights["q"]
    assert (weight.dtype, weight.stored_as) == (kind.dtype, kind.dtype)
    assert weight.stored_bytes == found.weights["q"].stored_bytes == 64 * 80
    save_model(again, tmp_path / "second.onnx")
    first, second = (
        load_model(tmp_path / f"{name}.onnx").weights["q"] for name in ("first", "second")
    )
    assert b"".join(first.iterate_bytes()) == b"".join(second.iterate_bytes())


def test_memory_does_not_grow_with_the_weight(tmp_path: Path) -> None:
    rows, columns = 4096, 8192  # 128 MiB, of which nothing is on the disk
    with (tmp_path / "w.bin").open("wb") as file:
        file.truncate(rows * columns * 4)
    tensor = external_tensor("w", [rows, columns], location="w.bin")
    result = value("y", (rows, columns))
    found = loaded(model([op("Identity", "w", "y")], [], [result], [tensor]), tmp_path)
    tracemalloc.start()
    try:
        store(found, 1, INT8)
        del found.graph.node[:]
        DropUnusedConstantsPass()(found)
        save_model(found, tmp_path / "out.onnx")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 48 << 20, f"quantizing 128 MiB of weights took {peak >> 20} MiB"


@KINDS
def test_emulation_leaves_quantized_weights_alone(kind: QuantizedType, tmp_path: Path) -> None:
    found = holding(random_array(64, 80, seed=7), tmp_path, large=True)
    store(found, 0, kind)
    found.graph.node.append(op("DequantizeLinear", "q s", "z", axis=0))
    found.graph.initializer.append(constant("s", np.full(64, 0.5), np.float16))
    found.graph.output.append(value("z", (64, 80), TensorProto.FLOAT16))
    emulated = emulate_model(found)
    assert emulated.weights["q"] == found.weights["q"]
    names = {tensor.name: tensor.data_type for tensor in emulated.graph.initializer}
    assert names["q"] == kind.dtype.code


@pytest.mark.parametrize("axis", [2, -3])
def test_an_axis_the_weight_has_not_is_refused(axis: int) -> None:
    with pytest.raises(ValueError, match="2 dimensions"):
        measure(in_memory(weight_model(random_array(2, 3))), axis)


def test_scales_must_match_the_axis() -> None:
    found = in_memory(weight_model(random_array(2, 3)))
    with pytest.raises(ValueError, match="'w' has 3 channels, but 2 scales"):
        store_quantized(found, found.graph.initializer[0], "q", np.ones(2, np.float32), 1, INT8)
