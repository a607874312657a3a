from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

from trtdeploy.core.dtypes import SHAPE_VALUE_TYPES, DType


def test_codes_are_those_of_onnx() -> None:
    for name, code in TensorProto.DataType.items():
        ours = {"FLOAT": "FLOAT32", "DOUBLE": "FLOAT64"}.get(name, name)
        assert DType.from_onnx(code).name in (ours, "UNDEFINED"), f"{name} = {code}"


def test_a_code_newer_than_the_table_is_undefined() -> None:
    assert DType.from_onnx(9999) is DType.UNDEFINED


@pytest.mark.parametrize("dtype", [d for d in DType if d.bits >= 8], ids=lambda d: d.label)
def test_bits_are_those_of_numpy(dtype: DType) -> None:
    if dtype.code not in TensorProto.DataType.values():
        pytest.skip(f"onnx {onnx.__version__} does not know {dtype.label}")
    assert dtype.bits == helper.tensor_dtype_to_np_dtype(dtype.code).itemsize * 8


@pytest.mark.parametrize("dtype", [d for d in DType if 0 < d.bits < 8], ids=lambda d: d.label)
def test_packed_types_carry_their_width_in_their_name(dtype: DType) -> None:
    assert dtype.label.startswith((f"int{dtype.bits}", f"uint{dtype.bits}", f"float{dtype.bits}"))


@pytest.mark.parametrize("dtype", [DType.UNDEFINED, DType.STRING])
def test_types_without_a_width_have_no_bits(dtype: DType) -> None:
    assert dtype.bits == 0


def test_labels_are_lower_case_names() -> None:
    assert DType.BFLOAT16.label == "bfloat16"
    assert DType.FLOAT8E4M3FN.label == "float8e4m3fn"


def test_shape_values_are_integers_or_bool() -> None:
    assert {d.label for d in SHAPE_VALUE_TYPES} == {"int32", "int64", "bool"}
