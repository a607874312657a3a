"""What can be pinned in a model: quantized layers, or the nodes between two layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trtdeploy.core.errors import UsageError
from trtdeploy.graph.index import build_index
from trtdeploy.graph.layer_costs import is_layer, measure_layer_costs
from trtdeploy.graph.model import OnnxModel
from trtdeploy.pinning.candidate import Candidate
from trtdeploy.precision.planning import plan_precision
from trtdeploy.precision.quantization.operands import find_roots
from trtdeploy.precision.quantization.plan import QuantizationPlan
from trtdeploy.precision.quantization.prequantized import PREQUANTIZED_RULE
from trtdeploy.precision.typing_options import TypingOptions


def list_quantized_layers(
    model: OnnxModel, plan: QuantizationPlan, shapes: Mapping[str, tuple[int, ...]]
) -> list[Candidate]:
    """Return every layer that the plan quantizes.

    Args:
        model: From ``prepare_for_quantization``.
        plan: Says which layers are quantized, and by which rule.
        shapes: Sizes of the inputs, for the work that each layer does.

    Raises:
        UsageError: There is none.
    """
    index = build_index(model)
    costs = measure_layer_costs(index, shapes)
    op_types = {node.name: node.op_type for _, node in index.nodes()}
    found = []
    for name, decision in plan.layers.items():
        if decision.quantized is not None and decision.rule != PREQUANTIZED_RULE:
            cost = costs.get(name)
            flops = None if cost is None else cost.flops
            found.append(Candidate(name, op_types[name], (name,), flops))
    if not found:
        raise UsageError(
            "the recipe quantizes no layer of this model: there is nothing to pin",
            hint="'trtdeploy check MODEL --profile NAME' says why each layer is left alone.",
        )
    return found


def list_narrow_groups(model: OnnxModel, options: TypingOptions) -> list[Candidate]:
    """Return the nodes that a recipe narrows, each layer with what follows up to the next one.

    Args:
        model: From ``prepare_for_typing``.
        options: What the recipe is applied with.

    Raises:
        UsageError: It narrows nothing.
    """
    index = build_index(model)
    recipe = options.recipe
    plan = plan_precision(index, recipe, pins=options.pins, ranges=options.ranges)
    groups: list[list[tuple[str, str]]] = []
    for _, node in index.nodes():
        decision = plan.nodes.get(node.name)
        if decision is None or decision.dtype is not recipe.low:
            continue
        if is_layer(node) or not groups:
            groups.append([])
        groups[-1].append((node.name, node.op_type))
    if not groups:
        raise UsageError(f"recipe {recipe.name} narrows no node of this model")
    return [Candidate(*group[0], tuple(name for name, _ in group)) for group in groups]


def join_candidates(candidates: Sequence[Candidate], most: int) -> list[Candidate]:
    """Return at most so many candidates, neighbours joined."""
    size = -(-len(candidates) // max(most, 1))
    joined = []
    for start in range(0, len(candidates), size):
        part = candidates[start : start + size]
        costs = [c.flops for c in part if c.flops is not None]
        nodes = tuple(node for candidate in part for node in candidate.nodes)
        joined.append(
            Candidate(part[0].name, part[0].op_type, nodes, sum(costs) if costs else None)
        )
    return joined


def list_measured(model: OnnxModel, plan: QuantizationPlan) -> tuple[str, ...]:
    """Return the values whose amax any set of pins may need.

    A pin may end what is carried in 8 bits, and lets a residual Add read its other branch so; both
    then need the range of a value that the plan without pins does not measure.

    Args:
        model: From ``prepare_for_quantization``.
        plan: Without the pins to be found.
    """
    index = build_index(model)
    main = index.main
    needed = set(plan.measured)
    roots = find_roots(index, ())  # with nothing carried
    nodes = {node.name: node for node in main.nodes}
    for operand in plan.operands:
        node = nodes[operand.node]
        tensors = node.input if node.op_type == "Add" else [operand.tensor]
        for tensor in tensors:
            if main.constant_of(tensor) is None:
                needed.add(roots.get(tensor, tensor))
    values = [value.name for value in main.graph.input]
    values += [name for node in main.nodes for name in node.output]
    return tuple(name for name in values if name in needed)
