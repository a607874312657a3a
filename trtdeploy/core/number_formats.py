"""What the types of numbers can hold: 8-bit types to quantize to, 16-bit floats, roundings."""

from __future__ import annotations

from dataclasses import dataclass

from trtdeploy.core.dtypes import DType


@dataclass(frozen=True)
class QuantizedType:
    """One 8-bit type; quantization is symmetric, so a zero point is always 0.

    Attributes:
        name: As written in profiles and pins.
        dtype: Element type of the stored tensor.
        max: Largest magnitude that it stores; scale = amax / max.
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


@dataclass(frozen=True)
class FloatLimits:
    """Range of a 16-bit float.

    Attributes:
        max: Largest finite value.
        overflow: Smallest magnitude that rounds to infinity.
        smallest_normal: Smallest magnitude with full precision.
    """

    max: float
    overflow: float
    smallest_normal: float


FLOAT_LIMITS = {
    DType.FLOAT16: FloatLimits(max=65504.0, overflow=65520.0, smallest_normal=2.0**-14),
    DType.BFLOAT16: FloatLimits(
        max=3.3895313892515355e38, overflow=3.3961775292304957e38, smallest_normal=2.0**-126
    ),
}
"""IEEE 754 binary16: 11-bit significand, exponents -14 to 15. bfloat16: 8-bit significand, the
exponents of binary32."""


@dataclass(frozen=True)
class Rounding:
    """How finely a type stores numbers.

    Attributes:
        unit: Largest relative error of rounding to nearest, half an ulp of 1.
        step: Distance of the smallest numbers, below which nothing is told apart.
    """

    unit: float
    step: float


FP32_ROUNDING = Rounding(2.0**-24, 2.0**-149)
FP16_ROUNDING = Rounding(2.0**-11, 2.0**-24)
BF16_ROUNDING = Rounding(2.0**-8, 2.0**-133)
"""Significands of 24, 11 and 8 bits: IEEE 754 binary32 and binary16, and bfloat16."""
FP32_SUM_ROUNDING = Rounding(2.0**-20, 2.0**-149)
"""FP32 sums of thousands of products in another order, or by Winograd's algorithm, lose about four
bits (A. Lavin and S. Gray, Fast Algorithms for Convolutional Neural Networks, CVPR 2016)."""
