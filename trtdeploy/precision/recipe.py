"""Recipes: what a precision name means for every TensorRT."""

from __future__ import annotations

from dataclasses import dataclass, replace

from trtdeploy.core.dtypes import DType
from trtdeploy.core.errors import NotPossibleError
from trtdeploy.core.names import suggest_name
from trtdeploy.precision.quantization.scheme import FP8_E4M3, INT8, QuantizedType


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
        weak: The graph itself stays FP32; the compiler may narrow what the plan does not keep.
    """

    name: str
    low: DType | None
    limits: FloatLimits | None
    tf32: bool
    opset: int
    summary: str
    quantized: QuantizedType | None = None
    weak: bool = False

    @property
    def graph_dtype(self) -> DType:
        """The type that nodes have in the typed graph unless a rule keeps them FP32."""
        return DType.FLOAT32 if self.low is None or self.weak else self.low


OPSET_OF_NARROW_SCALES = 19
"""From here on QuantizeLinear and DequantizeLinear take FP16 scales and FP8 (ONNX operators)."""
_OPSET_OF_CHANNEL_SCALES = 13
"""From here on they take one scale per channel."""

RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe("fp32", None, None, False, 13, "every tensor FP32, TF32 off"),
        Recipe("tf32", None, None, True, 13, "every tensor FP32, matrix products may use TF32"),
        Recipe("fp16", DType.FLOAT16, FLOAT16_LIMITS, True, 13, "FP16, what overflows stays FP32"),
        Recipe("bf16", DType.BFLOAT16, BFLOAT16_LIMITS, True, 22, "BF16, sums stay FP32"),
        Recipe(
            "int8", DType.FLOAT16, FLOAT16_LIMITS, True, OPSET_OF_NARROW_SCALES,
            "INT8 layers, FP16 for the rest", INT8,
        ),
        Recipe(
            "int8-fp32", None, None, False, _OPSET_OF_CHANNEL_SCALES,
            "INT8 layers, FP32 for the rest, TF32 off", INT8,
        ),
        Recipe(
            "fp8", DType.FLOAT16, FLOAT16_LIMITS, True, OPSET_OF_NARROW_SCALES,
            "FP8 (E4M3) layers, FP16 for the rest", FP8_E4M3,
        ),
    )
}  # fmt: skip


def find_recipe(name: str) -> Recipe:
    """Return the recipe called ``name``.

    Raises:
        NotPossibleError: This version of trtdeploy does not have it.
    """
    if name not in RECIPES:
        raise NotPossibleError(
            f"this version of trtdeploy has no recipe {name!r} "
            f"(it has {', '.join(sorted(RECIPES))})",
            hint=suggest_name(name, RECIPES) + " Choose one with --set recipe=NAME.",
        )
    return RECIPES[name]


def make_weak_recipe(recipe: Recipe) -> Recipe:
    """Return what ``recipe`` means for a weakly typed network (TensorRT 8.6, or on request).

    Such a compiler narrows by flags and pins: the plan stays as it is, the graph stays FP32. That
    includes Q/DQ nodes, because TensorRT 8.6 reads opset 17 and has no FP16 scales.

    Raises:
        NotPossibleError: The recipe needs a strongly typed network.
    """
    if recipe.quantized is None:
        return recipe
    if recipe.quantized is not INT8:
        raise NotPossibleError(
            f"recipe {recipe.name} needs a strongly typed network: a weakly typed one has no "
            f"{recipe.quantized.name} tensors",
            hint="Use recipe int8 here, or TensorRT 10 or newer without 'typing: weak'.",
        )
    return replace(recipe, opset=_OPSET_OF_CHANNEL_SCALES, weak=True)
