"""From recipe, rules and pins to a quantization plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trtdeploy.config.recipe import Recipe
from trtdeploy.core.dtypes import DType
from trtdeploy.core.errors import NotPossibleError, UsageError
from trtdeploy.core.number_formats import FP8_E5M2, QuantizedType
from trtdeploy.graph.index import ModelIndex
from trtdeploy.precision.pins import Pin, find_pinned
from trtdeploy.precision.plan import PrecisionPlan
from trtdeploy.precision.planning import plan_precision
from trtdeploy.precision.quantization.layers import LAYER_OPERATORS, Layer, find_layers
from trtdeploy.precision.quantization.operands import OperandPlacement
from trtdeploy.precision.quantization.plan import (
    RECIPE_RULE,
    LayerDecision,
    QuantizationPlan,
    QuantizedWeight,
)
from trtdeploy.precision.quantization.prequantized import (
    PREQUANTIZED_RULE,
    find_prequantized_layers,
    quantizes_activations,
)
from trtdeploy.precision.quantization.rules.activation_product import KeepActivationProductRule
from trtdeploy.precision.quantization.rules.box_decode import KeepBoxDecodeRule
from trtdeploy.precision.quantization.rules.broken_weight import KeepBrokenWeightRule
from trtdeploy.precision.quantization.rules.depthwise_layer import KeepDepthwiseLayerRule
from trtdeploy.precision.quantization.rules.few_channels import KeepFewChannelsRule
from trtdeploy.precision.quantization.rules.first_layer import KeepFirstLayerRule
from trtdeploy.precision.quantization.rules.float32_layer import KeepFloat32LayerRule
from trtdeploy.precision.quantization.rules.last_layer import KeepLastLayerRule
from trtdeploy.precision.quantization.rules.nested_layer import KeepNestedLayerRule
from trtdeploy.precision.quantization.rules.operator_form import KeepOperatorFormRule
from trtdeploy.precision.quantization.rules.pinned_layer import KeepPinnedLayerRule
from trtdeploy.precision.quantization.rules.pooled_layer import KeepPooledLayerRule
from trtdeploy.precision.quantization.rules.rule import LayerContext, LayerRule

ENGINE_LIMITS: dict[QuantizedType, str] = {
    FP8_E5M2: "no TensorRT has E5M2 tensors (the TensorRT-RTX 1.7 parser refuses them)",
}
"""Found by compiling each form of each layer; ``tests/precision`` repeats it on the real compiler.

INT8 and E4M3 build with FP16 and FP32 scales for every layer there is: 1-D to 3-D convolutions with
and without groups, transposed ones scaled along either axis, Gemm and MatMul on either side,
attention.
"""


def plan_quantization(
    index: ModelIndex,
    recipe: Recipe,
    *,
    pins: Sequence[str] = (),
    ranges: Mapping[str, float] | None = None,
) -> QuantizationPlan:
    """Decide which layers are quantized, and where Q/DQ pairs go.

    Args:
        index: A model from ``prepare_for_quantization``.
        recipe: One with ``quantized`` set.
        pins: What the user wants for single nodes (see ``trtdeploy.precision.pins``).
        ranges: Largest magnitude per value from an FP32 run, when there was data to run.

    Raises:
        UsageError: A pin matches no node, asks for what the recipe does not have, or asks to
            quantize what cannot be quantized; or the recipe quantizes nothing.
        NotPossibleError: A pin asks for a type that TensorRT does not have.
    """
    if recipe.quantized is None:
        raise UsageError(f"recipe {recipe.name} quantizes nothing", hint="Use int8 or fp8.")
    pinned = find_pinned(pins, index)
    _check_pins(pinned, recipe)
    precision = plan_precision(index, recipe, pins=pins, ranges=ranges)
    layers = find_layers(index)
    context = LayerContext(index, layers, recipe.quantized, precision, pinned)
    decisions = _decide(context)
    _check_quantizing_pins(context, decisions)
    new = {
        name: decision.kind
        for name, decision in decisions.items()
        if decision.kind is not None and decision.rule != PREQUANTIZED_RULE
    }
    placement = OperandPlacement(index, layers, new, _find_fp32_nodes(precision))
    operands = placement.list_operands()
    return QuantizationPlan(
        decisions,
        operands,
        tuple(_list_weights(layers, new)),
        placement.list_measured(operands),
        recipe.graph_dtype,
        _note_prequantized(index, layers, decisions),
    )


def make_rules() -> list[LayerRule]:
    """Return every rule; the first one that objects gives the reason."""
    return [
        KeepPinnedLayerRule(),
        KeepNestedLayerRule(),
        KeepOperatorFormRule(),
        KeepBrokenWeightRule(),
        KeepActivationProductRule(),
        KeepFloat32LayerRule(),
        KeepBoxDecodeRule(),
        KeepFirstLayerRule(),
        KeepLastLayerRule(),
        KeepPooledLayerRule(),
        KeepDepthwiseLayerRule(),
        KeepFewChannelsRule(),
    ]


def _decide(context: LayerContext) -> dict[str, LayerDecision]:
    decided = find_prequantized_layers(context.index, context.layers)
    if quantizes_activations(context.index):
        reason = "the model is pre-quantized, and is not quantized twice"
        for name in context.layers:
            decided.setdefault(name, LayerDecision(None, PREQUANTIZED_RULE, reason))
    for rule in make_rules():
        for name, reason in rule.find(context):
            pin = context.pinned.get(name)
            overruled = pin is not None and pin.kind is not None and not rule.is_binding
            if not overruled:
                decided.setdefault(name, LayerDecision(None, type(rule).__name__, reason))
    for name, layer in context.layers.items():
        if name not in decided:
            decided[name] = _quantize(context, layer)
    return {name: decided[name] for name in context.layers}


def _quantize(context: LayerContext, layer: Layer) -> LayerDecision:
    pin = context.pinned.get(layer.name)
    if pin is not None and pin.kind is not None:
        return LayerDecision(
            pin.kind.name, "pin", f"pinned to {pin.precision.upper()} by {pin.text!r}"
        )
    reason = f"recipe {context.precision.recipe.name}"
    if layer.axis_reason:
        reason += f"; {layer.axis_reason}"
    return LayerDecision(context.kind.name, RECIPE_RULE, reason)


def _check_pins(pinned: Mapping[str, Pin], recipe: Recipe) -> None:
    for pin in pinned.values():
        if pin.kind in ENGINE_LIMITS:
            raise NotPossibleError(
                f"the pin {pin.text!r} cannot be met: {ENGINE_LIMITS[pin.kind]}",
                hint="Use fp8, which is E4M3: each tensor has a scale, so its range suffices.",
            )
        if pin.precision == "fp16" and recipe.low is not DType.FLOAT16:
            raise UsageError(
                f"the pin {pin.text!r} asks for FP16, which recipe {recipe.name} does not use",
                hint=f"Pin it to FP32: {pin.pattern!r}.",
            )


def _check_quantizing_pins(context: LayerContext, decisions: Mapping[str, LayerDecision]) -> None:
    """Refuse a pin that quantizes nothing, or not the very node that it names."""
    by_text: dict[str, list[str]] = {}
    for name, pin in context.pinned.items():
        if pin.kind is not None:
            by_text.setdefault(pin.text, []).append(name)
    for text, names in by_text.items():
        met = [n for n in names if n in decisions and decisions[n].quantized is not None]
        exact = [n for n in names if context.pinned[n].is_exact_for(n)]
        if not met or not set(exact) <= set(met):
            name = next(iter([n for n in exact if n not in met] or names))
            raise UsageError(
                f"the pin {text!r} asks to quantize {name!r}, which is not possible: "
                + _explain_obstacle(context, decisions, name),
                hint="Remove the pin, or name a layer that 'trtdeploy check' lists.",
            )


def _explain_obstacle(
    context: LayerContext, decisions: Mapping[str, LayerDecision], name: str
) -> str:
    if name in decisions:
        return decisions[name].reason
    op_type = next(node.op_type for _, node in context.index.nodes() if node.name == name)
    return f"it is a {op_type}, and only {', '.join(sorted(LAYER_OPERATORS))} are quantized"


def _list_weights(
    layers: Mapping[str, Layer], kinds: Mapping[str, QuantizedType]
) -> list[QuantizedWeight]:
    return [
        QuantizedWeight(name, layer.weight_slot, layer.weight.name, kinds[name], layer.axis)
        for name, layer in layers.items()
        if name in kinds and layer.weight is not None and layer.weight_slot is not None
    ]


def _find_fp32_nodes(precision: PrecisionPlan) -> frozenset[str]:
    """Return the nodes that a rule keeps FP32; in an FP32 recipe that is none."""
    if precision.recipe.low is None:
        return frozenset()
    return frozenset(name for name, d in precision.nodes.items() if d.dtype is DType.FLOAT32)


def _note_prequantized(
    index: ModelIndex, layers: Mapping[str, Layer], decisions: Mapping[str, LayerDecision]
) -> tuple[str, ...]:
    found = [name for name in layers if decisions[name].rule == PREQUANTIZED_RULE]
    if not found:
        return ()
    quantized = sum(decisions[name].quantized is not None for name in found)
    if quantizes_activations(index):
        return (
            f"the model is pre-quantized: {quantized} of {len(layers)} layers are quantized by "
            "Q/DQ pairs of its own, and nothing is added",
        )
    return (f"the model has pre-quantized weights: {len(found)} layers are left as they are",)
