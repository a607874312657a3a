"""The one entrance: from an FP32 model and a recipe to a typed model and the reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from trtdeploy.config.recipe import Recipe
from trtdeploy.core.errors import UsageError
from trtdeploy.graph.index import ModelIndex, build_index
from trtdeploy.graph.model import OnnxModel
from trtdeploy.precision.plan import NodeDecision, PrecisionPlan
from trtdeploy.precision.planning import plan_precision
from trtdeploy.precision.quantization.brought import find_brought_layers, has_pairs
from trtdeploy.precision.quantization.insertion import InsertQuantizationPass
from trtdeploy.precision.quantization.layers import find_layers
from trtdeploy.precision.quantization.plan import LayerDecision, QuantizationPlan
from trtdeploy.precision.quantization.planning import plan_quantization
from trtdeploy.precision.quantization.preparation import (
    prepare_for_quantization,
    prepare_for_typing,
)
from trtdeploy.precision.typing_pass import ApplyPrecisionPass


@dataclass(frozen=True)
class TypedModel:
    """Result of a recipe.

    Attributes:
        model: The strongly typed model; save it with ``trtdeploy.graph.saving.save_model``.
        plan: Type and reason of every floating-point node.
        quantization: What was quantized, as settled by the thresholds; None for recipes that
            quantize nothing.
    """

    model: OnnxModel
    plan: PrecisionPlan
    quantization: QuantizationPlan | None = None


def apply_recipe(
    model: OnnxModel,
    recipe: Recipe,
    *,
    pins: Sequence[str] = (),
    ranges: Mapping[str, float] | None = None,
    keep_io: bool = True,
    thresholds: Mapping[str, float] | None = None,
) -> TypedModel:
    """Type ``model`` by ``recipe``; the given model is not changed.

    Args:
        model: An FP32 model as loaded.
        recipe: What to aim for; from ``make_weak_recipe`` for a weakly typed network.
        pins: What the user wants for single nodes (see ``trtdeploy.precision.pins``).
        ranges: Largest magnitude per value from an FP32 run of the same file.
        keep_io: Keep graph inputs and outputs FP32; False gives them the narrow type.
        thresholds: Clipping magnitude per value of ``plan_quantization(...).measured``, from
            calibration of ``prepare_for_quantization(model, recipe)``.

    Raises:
        ModelFileError: The opset cannot be raised to what the recipe needs.
        UsageError: A pin makes no sense for this model and recipe, or the recipe quantizes and
            there are no thresholds.
        NotPossibleError: A pin asks for a type that TensorRT does not have.
        InputError: A threshold is missing: the calibration belongs to another model.
    """
    quantization = None
    if recipe.quantized is None:
        typed = prepare_for_typing(model, recipe)
    else:
        typed = prepare_for_quantization(model, recipe)
        quantization = _quantize(typed, recipe, pins, ranges, thresholds)
    index = build_index(typed)
    plan = plan_precision(index, recipe, pins=pins, ranges=ranges)
    plan = replace(plan, quantized=_describe_quantized(index, quantization))
    if not recipe.weak:
        ApplyPrecisionPass(plan, keep_io=keep_io).rewrite(index)
    return TypedModel(typed, plan, quantization)


def _quantize(
    model: OnnxModel,
    recipe: Recipe,
    pins: Sequence[str],
    ranges: Mapping[str, float] | None,
    thresholds: Mapping[str, float] | None,
) -> QuantizationPlan:
    plan = plan_quantization(build_index(model), recipe, pins=pins, ranges=ranges)
    if plan.is_empty:
        return plan
    if thresholds is None:
        raise UsageError(
            f"recipe {recipe.name} needs a calibration: the ranges of {len(plan.measured)} values",
            hint="Give samples with --calib, the way --data takes them.",
        )
    return InsertQuantizationPass(plan, thresholds)(model)


def _describe_quantized(
    index: ModelIndex, quantization: QuantizationPlan | None
) -> dict[str, NodeDecision]:
    """Return the layers that read 8 bits, those of a model that brings them included."""
    layers: Mapping[str, LayerDecision] = {}
    if quantization is not None:
        layers = quantization.layers
    elif has_pairs(index.model):
        layers = find_brought_layers(index, find_layers(index))
    return {
        name: NodeDecision(decision.kind.dtype, decision.rule, decision.reason)
        for name, decision in layers.items()
        if decision.kind is not None
    }
