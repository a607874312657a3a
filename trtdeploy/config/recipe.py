"""Recipes: what a precision name means, for every TensorRT, device and comparison.

Everything that depends on a recipe is a field of its entry in ``RECIPES``; no other file lists
them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NewType

from trtdeploy.config.compute_capability import Precision
from trtdeploy.core.dtypes import DType
from trtdeploy.core.errors import NotPossibleError
from trtdeploy.core.names import suggest_name
from trtdeploy.core.number_formats import (
    BF16_ROUNDING,
    FP8_E4M3,
    FP16_ROUNDING,
    FP32_ROUNDING,
    FP32_SUM_ROUNDING,
    INT8,
    QuantizedType,
    Rounding,
)

RecipeName = NewType("RecipeName", str)
"""A key of ``RECIPES``; a deploy profile with another one is refused."""

OPSET_OF_NARROW_SCALES = 19
"""From here on QuantizeLinear and DequantizeLinear take FP16 scales and FP8 (ONNX operators)."""
OPSET_OF_CHANNEL_SCALES = 13
"""From here on they take one scale per channel."""
_CLOSE_FRACTION = 0.999
"""One saturated score in a thousand may tip over."""
_NARROW_CLOSE_FRACTION = 0.99
"""The same where tensors are stored in 16 bits or fewer: at the edges of a sigmoid map honest FP16
tips more scores over (0.6 % of the pixels of PP-OCRv6 detection, relative L2 error 5e-3)."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One way to type a model.

    The default of each field is what an FP32 model needs. ``relative_l2`` is wide: about 40 units
    of the narrow type, which is what the roundings of a deep network add up to in the relative
    2-norm. It is a judgement, not a law; ``parity.atol`` and ``parity.rtol`` replace it.

    Attributes:
        name: As written in profiles and on the command line.
        summary: One line for people.
        needs: What a device must compute in.
        relative_l2: Largest relative L2 error of an output (``parity.tolerance``).
        close_fraction: Share of elements of an output that must be within the same error of the
            largest one. A profile's own tolerance holds for every element, like ``numpy.allclose``.
        low: The narrow type most nodes get; None keeps the model FP32.
        quantized: The 8-bit type that layers are quantized to; None quantizes nothing.
        tf32: TensorRT may use TF32 inside FP32 matrix products.
        opset: Lowest opset whose operators take ``low`` (bfloat16 Conv and pooling: 22).
        weak_flags: Builder flags under weak typing; None needs a strongly typed network.
        output_rounding: Of the type an output may be stored in (``parity.noise``).
        input_rounding: Of the type that inputs are rounded to where nothing can be emulated.
        weak: The graph itself stays FP32; the compiler may narrow what the plan does not keep.
    """

    name: str
    summary: str
    needs: tuple[Precision, ...]
    relative_l2: float
    close_fraction: float = _NARROW_CLOSE_FRACTION
    low: DType | None = None
    quantized: QuantizedType | None = None
    tf32: bool = False
    opset: int = OPSET_OF_CHANNEL_SCALES
    weak_flags: tuple[str, ...] | None = ()
    output_rounding: Rounding = FP32_SUM_ROUNDING
    input_rounding: Rounding = FP32_SUM_ROUNDING
    weak: bool = False

    @property
    def graph_dtype(self) -> DType:
        """The type that nodes have in the typed graph unless a rule keeps them FP32."""
        return DType.FLOAT32 if self.low is None or self.weak else self.low


FP32 = Recipe(
    name="fp32",
    summary="every tensor FP32, TF32 off",
    needs=("fp32",),
    relative_l2=1e-4,  # 80 dB; room for Winograd and other orders of summation
    close_fraction=_CLOSE_FRACTION,
    input_rounding=FP32_ROUNDING,
)
_TF32 = Recipe(
    name="tf32",
    summary="every tensor FP32, matrix products may use TF32",
    needs=("tf32",),
    relative_l2=1e-2,  # 40 dB; unit 4.9e-4, products only
    close_fraction=_CLOSE_FRACTION,
    tf32=True,
    input_rounding=FP16_ROUNDING,
)
_FP16 = Recipe(
    name="fp16",
    summary="FP16, what overflows stays FP32",
    needs=("fp16",),
    relative_l2=2e-2,  # 34 dB; unit 4.9e-4
    low=DType.FLOAT16,
    tf32=True,
    weak_flags=("FP16",),
    output_rounding=FP16_ROUNDING,
    input_rounding=FP16_ROUNDING,
)
_BF16 = Recipe(
    name="bf16",
    summary="BF16, sums stay FP32",
    needs=("bf16",),
    relative_l2=1e-1,  # 20 dB; unit 3.9e-3
    low=DType.BFLOAT16,
    tf32=True,
    opset=22,
    weak_flags=("BF16",),
    output_rounding=BF16_ROUNDING,
    input_rounding=BF16_ROUNDING,
)
_INT8 = replace(
    _FP16,
    name="int8",
    summary="INT8 layers, FP16 for the rest",
    needs=("int8", "fp16"),
    relative_l2=1.5e-1,  # 16 dB; unit 3.9e-3 of the range of each tensor
    quantized=INT8,
    opset=OPSET_OF_NARROW_SCALES,
    weak_flags=("INT8", "FP16"),
)
_INT8_FP32 = Recipe(
    name="int8-fp32",
    summary="INT8 layers, FP32 for the rest, TF32 off",
    needs=("int8", "fp32"),
    relative_l2=_INT8.relative_l2,
    quantized=INT8,
    weak_flags=("INT8",),
)
_FP8 = replace(
    _INT8,
    name="fp8",
    summary="FP8 (E4M3) layers, FP16 for the rest",
    needs=("fp8", "fp16"),
    relative_l2=2e-1,  # 14 dB; unit 6.3e-2 (E4M3), products only
    quantized=FP8_E4M3,
    weak_flags=None,
)

RECIPES = {recipe.name: recipe for recipe in (FP32, _TF32, _FP16, _BF16, _INT8, _INT8_FP32, _FP8)}


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
    if recipe.weak_flags is None:
        raise NotPossibleError(
            f"recipe {recipe.name} needs a strongly typed network: a weakly typed one has no "
            f"{recipe.quantized.name} tensors",
            hint="Use recipe int8 here, or TensorRT 10 or newer without 'typing: weak'.",
        )
    return replace(recipe, opset=OPSET_OF_CHANNEL_SCALES, weak=True)
