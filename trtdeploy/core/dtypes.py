"""The element types trtdeploy talks about, under one spelling each."""

from __future__ import annotations

from enum import Enum


class DType(Enum):
    """Element type of a tensor; the value is its name for people and JSON, e.g. ``float16``.

    The order is that of the ONNX ``TensorProto.DataType`` codes, from 0 and without a gap, which
    the ONNX specification fixes (onnx.proto, message TensorProto).
    """

    UNDEFINED = "undefined"
    FLOAT32 = "float32"
    UINT8 = "uint8"
    INT8 = "int8"
    UINT16 = "uint16"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    STRING = "string"
    BOOL = "bool"
    FLOAT16 = "float16"
    FLOAT64 = "float64"
    UINT32 = "uint32"
    UINT64 = "uint64"
    COMPLEX64 = "complex64"
    COMPLEX128 = "complex128"
    BFLOAT16 = "bfloat16"
    FLOAT8E4M3FN = "float8e4m3fn"
    FLOAT8E4M3FNUZ = "float8e4m3fnuz"
    FLOAT8E5M2 = "float8e5m2"
    FLOAT8E5M2FNUZ = "float8e5m2fnuz"
    UINT4 = "uint4"
    INT4 = "int4"
    FLOAT4E2M1 = "float4e2m1"
    FLOAT8E8M0 = "float8e8m0"
    UINT2 = "uint2"
    INT2 = "int2"

    @classmethod
    def from_onnx(cls, code: int) -> DType:
        """Return the type of an ONNX code; codes newer than this table become UNDEFINED."""
        return _BY_CODE[code] if 0 <= code < len(_BY_CODE) else cls.UNDEFINED

    @property
    def code(self) -> int:
        """The ONNX code."""
        return _BY_CODE.index(self)

    @property
    def label(self) -> str:
        """The value: lower-case name for people and JSON, e.g. ``float16``."""
        return self.value

    @property
    def bits(self) -> int:
        """Storage width of one element in bits; 0 for strings and UNDEFINED."""
        return _BITS.get(self.name, 0)


_BY_CODE = tuple(DType)
_BITS = {
    "FLOAT32": 32, "UINT8": 8, "INT8": 8, "UINT16": 16, "INT16": 16, "INT32": 32, "INT64": 64,
    "BOOL": 8, "FLOAT16": 16, "FLOAT64": 64, "UINT32": 32, "UINT64": 64, "COMPLEX64": 64,
    "COMPLEX128": 128, "BFLOAT16": 16, "FLOAT8E4M3FN": 8, "FLOAT8E4M3FNUZ": 8, "FLOAT8E5M2": 8,
    "FLOAT8E5M2FNUZ": 8, "UINT4": 4, "INT4": 4, "FLOAT4E2M1": 4, "FLOAT8E8M0": 8, "UINT2": 2,
    "INT2": 2,
}  # fmt: skip

SHAPE_VALUE_TYPES = frozenset({DType.INT32, DType.INT64, DType.BOOL})
"""Types a TensorRT shape tensor may have."""
