"""The one entrance: from an FP32 model and a recipe to a typed model and the reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from trtdeploy.core.errors import UsageError
from trtdeploy.graph.index import ModelIndex, build_index
from trtdeploy.graph.model import OnnxModel
from trtdeploy.precision.plan import NodeDecision, PrecisionPlan
from trtdeploy.precision.planning import plan_precision
from trtdeploy.precision.quantization.insertion import insert_quantization
from trtdeploy.precision.quantization.layers import find_layers
from trtdeploy.precision.quantization.plan import LayerDecision, QuantizationPlan
from trtdeploy.precision.quantization.planning import plan_quantization
from trtdeploy.precision.quantization.preparation import (
    prepare_for_quantization,
    prepare_for_typing,
)
from trtdeploy.precision.quantization.prequantized import find_prequantized_layers, has_pairs
from trtdeploy.precision.typing_options import TypingOptions
from trtdeploy.precision.typing_pass import apply_precision


@dataclass(frozen=True)
class TypedModel:
    """Result of a recipe.

    Attributes:
        model: The strongly typed model; save it with ``trtdeploy.graph.saving.save_model``.
        plan: Type and reason of every floating-point node.
        quantization: What was quantized, with its scales resolved; None for recipes that
            quantize nothing.
    """

    model: OnnxModel
    plan: PrecisionPlan
    quantization: QuantizationPlan | None = None


def apply_recipe(model: OnnxModel, options: TypingOptions) -> TypedModel:
    """Type ``model`` by a recipe; the given model is not changed.

    Args:
        model: An FP32 model as loaded.
        options: The recipe, and what it is applied with.

    Raises:
        ModelFileError: The opset cannot be raised to what the recipe needs.
        UsageError: A pin makes no sense for this model and recipe, or the recipe quantizes and
            ``amax`` is None.
        NotPossibleError: A pin asks for a type that TensorRT does not have.
        InputError: A value has no ``amax``: the calibration belongs to another model.
    """
    recipe, quantization = options.recipe, None
    if recipe.quantized is None:
        typed = prepare_for_typing(model, recipe)
    else:
        typed = prepare_for_quantization(model, recipe)
        quantization = _quantize(typed, options)
    index = build_index(typed)
    plan = plan_precision(index, recipe, pins=options.pins, ranges=options.ranges)
    plan = replace(plan, quantized=_describe_quantized(index, quantization))
    if not recipe.weak:
        apply_precision(index, plan, keep_io=options.io == "keep")
    return TypedModel(typed, plan, quantization)


def _quantize(model: OnnxModel, options: TypingOptions) -> QuantizationPlan:
    recipe = options.recipe
    plan = plan_quantization(build_index(model), recipe, pins=options.pins, ranges=options.ranges)
    if plan.is_empty:
        return plan
    if options.amax is None:
        raise UsageError(
            f"recipe {recipe.name} needs a calibration: the ranges of {len(plan.measured)} values",
            hint="Give samples with --calib, the way --data takes them.",
        )
    return insert_quantization(model, plan, options.amax)


def _describe_quantized(
    index: ModelIndex, quantization: QuantizationPlan | None
) -> dict[str, NodeDecision]:
    """Return the layers that read 8 bits, those of a pre-quantized model included."""
    layers: Mapping[str, LayerDecision] = {}
    if quantization is not None:
        layers = quantization.layers
    elif has_pairs(index.model):
        layers = find_prequantized_layers(index, find_layers(index))
    return {
        name: NodeDecision(decision.kind.dtype, decision.rule, decision.reason)
        for name, decision in layers.items()
        if decision.kind is not None
    }
