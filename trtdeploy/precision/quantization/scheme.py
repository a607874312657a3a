"""The 8-bit types a recipe can quantize to."""

from __future__ import annotations

from dataclasses import dataclass

from trtdeploy.core.dtypes import DType


@dataclass(frozen=True)
class QuantizedType:
    """One 8-bit type; quantization is symmetric, so a zero point is always 0.

    Attributes:
        name: As written in profiles and pins.
        dtype: Element type of the stored tensor.
        max: Largest magnitude that it stores; scale = threshold / max.
    """

    name: str
    dtype: DType
    max: float


INT8 = QuantizedType("int8", DType.INT8, 127.0)
"""Two's complement without -128, so that both signs reach equally far."""
FP8_E4M3 = QuantizedType("fp8", DType.FLOAT8E4M3FN, 448.0)
"""4 exponent bits, 3 mantissa bits, no infinity (OCP 8-bit floating point specification 1.0)."""
FP8_E5M2 = QuantizedType("fp8-e5m2", DType.FLOAT8E5M2, 57344.0)
"""5 exponent bits, 2 mantissa bits (OCP 8-bit floating point specification 1.0)."""

QUANTIZED_TYPES = {kind.name: kind for kind in (INT8, FP8_E4M3, FP8_E5M2)}
