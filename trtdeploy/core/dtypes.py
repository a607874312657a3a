"""The element types trtdeploy talks about, under one spelling each."""

from __future__ import annotations

from enum import Enum


class DType(Enum):
    """Element type of a tensor; the value is its ONNX ``TensorProto.DataType`` code.

    The codes are fixed by the ONNX specification (onnx.proto, message TensorProto).
    """

    UNDEFINED = 0
    FLOAT32 = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    FLOAT64 = 11
    UINT32 = 12
    UINT64 = 13
    COMPLEX64 = 14
    COMPLEX128 = 15
    BFLOAT16 = 16
    FLOAT8E4M3FN = 17
    FLOAT8E4M3FNUZ = 18
    FLOAT8E5M2 = 19
    FLOAT8E5M2FNUZ = 20
    UINT4 = 21
    INT4 = 22
    FLOAT4E2M1 = 23
    FLOAT8E8M0 = 24
    UINT2 = 25
    INT2 = 26

    @classmethod
    def from_onnx(cls, code: int) -> DType:
        """Return the type of an ONNX code; codes newer than this table become UNDEFINED."""
        try:
            return cls(code)
        except ValueError:
            return cls.UNDEFINED

    @property
    def label(self) -> str:
        """Lower-case name for people and JSON, e.g. ``float16``."""
        return self.name.lower()

    @property
    def bits(self) -> int:
        """Storage width of one element in bits; 0 for strings and UNDEFINED."""
        return _BITS.get(self.name, 0)


_BITS = {
    "FLOAT32": 32, "UINT8": 8, "INT8": 8, "UINT16": 16, "INT16": 16, "INT32": 32, "INT64": 64,
    "BOOL": 8, "FLOAT16": 16, "FLOAT64": 64, "UINT32": 32, "UINT64": 64, "COMPLEX64": 64,
    "COMPLEX128": 128, "BFLOAT16": 16, "FLOAT8E4M3FN": 8, "FLOAT8E4M3FNUZ": 8, "FLOAT8E5M2": 8,
    "FLOAT8E5M2FNUZ": 8, "UINT4": 4, "INT4": 4, "FLOAT4E2M1": 4, "FLOAT8E8M0": 8, "UINT2": 2,
    "INT2": 2,
}  # fmt: skip

SHAPE_VALUE_TYPES = frozenset({DType.INT32, DType.INT64, DType.BOOL})
"""Types a TensorRT shape tensor may have."""
