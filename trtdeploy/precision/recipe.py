"""Recipes: what a precision name means for every TensorRT."""

from __future__ import annotations

from dataclasses import dataclass

from trtdeploy.core.dtypes import DType
from trtdeploy.core.errors import NotPossibleError
from trtdeploy.core.names import suggest_name
from trtdeploy.precision.quantization.scheme import QuantizedType


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


FLOAT16_LIMITS = FloatLimits(max=65504.0, overflow=65520.0, smallest_normal=2.0**-14)
"""IEEE 754 binary16: 11-bit significand, exponents -14 to 15."""
BFLOAT16_LIMITS = FloatLimits(
    max=3.3895313892515355e38, overflow=3.3961775292304957e38, smallest_normal=2.0**-126
)
"""bfloat16: 8-bit significand, the exponents of binary32."""


@dataclass(frozen=True)
class Recipe:
    """One way to type a model.

    Attributes:
        name: As written in profiles and on the command line.
        low: The narrow type most nodes get; None keeps the model FP32.
        limits: Range of ``low``.
        tf32: TensorRT may use TF32 inside FP32 matrix products.
        opset: Lowest opset whose operators take ``low`` (bfloat16 Conv and pooling: 22).
        summary: One line for people.
        quantized: The 8-bit type that layers are quantized to; None quantizes nothing.
    """

    name: str
    low: DType | None
    limits: FloatLimits | None
    tf32: bool
    opset: int
    summary: str
    quantized: QuantizedType | None = None


RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe("fp32", None, None, False, 13, "every tensor FP32, TF32 off"),
        Recipe("tf32", None, None, True, 13, "every tensor FP32, matrix products may use TF32"),
        Recipe("fp16", DType.FLOAT16, FLOAT16_LIMITS, True, 13, "FP16, what overflows stays FP32"),
        Recipe("bf16", DType.BFLOAT16, BFLOAT16_LIMITS, True, 22, "BF16, sums stay FP32"),
    )
}


def find_recipe(name: str) -> Recipe:
    """Return the recipe called ``name``.

    Raises:
        NotPossibleError: This version of trtdeploy does not have it.
    """
    if name not in RECIPES:
        raise NotPossibleError(
            f"this version of trtdeploy has no recipe {name!r} "
            f"(it has {', '.join(sorted(RECIPES))}); INT8 and FP8 need calibration, which comes "
            "with a later version",
            hint=suggest_name(name, RECIPES) + " Choose one with --set recipe=NAME.",
        )
    return RECIPES[name]
