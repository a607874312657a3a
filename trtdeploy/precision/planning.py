"""From recipe, rules and pins to a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trtdeploy.config.recipe import Recipe
from trtdeploy.core.dtypes import DType
from trtdeploy.graph.index import ModelIndex
from trtdeploy.precision.context import RuleContext
from trtdeploy.precision.neighbours import find_fp32_movers
from trtdeploy.precision.operators import Q_DQ_OPERATORS
from trtdeploy.precision.plan import NodeDecision, PrecisionPlan
from trtdeploy.precision.rules.engine_limits import KeepEngineLimitRule
from trtdeploy.precision.rules.measured_range import KeepMeasuredRangeRule
from trtdeploy.precision.rules.operator_kinds import KeepOperatorRule
from trtdeploy.precision.rules.pinned import KeepPinnedRule
from trtdeploy.precision.rules.position import KeepPositionRule
from trtdeploy.precision.rules.quantization_scale import KeepQuantizationScaleRule
from trtdeploy.precision.rules.rule import PrecisionRule
from trtdeploy.precision.rules.shape_arithmetic import KeepShapeArithmeticRule
from trtdeploy.precision.rules.softmax import KeepSoftmaxRule
from trtdeploy.precision.rules.tiny_constant import KeepTinyConstantRule
from trtdeploy.precision.rules.unsupported_type import KeepUnsupportedTypeRule
from trtdeploy.precision.rules.variance import KeepVarianceRule
from trtdeploy.precision.rules.wide_constant import KeepWideConstantRule

_RANDOM = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli",
     "Multinomial"}
)  # fmt: skip


def plan_precision(
    index: ModelIndex,
    recipe: Recipe,
    *,
    pins: Sequence[str] = (),
    ranges: Mapping[str, float] | None = None,
) -> PrecisionPlan:
    """Decide the type of every floating-point node.

    Args:
        index: A normalised model at an opset of at least ``recipe.opset``.
        recipe: What to aim for.
        pins: Node name patterns to keep FP32 (see ``KeepPinnedRule``).
        ranges: Largest magnitude per value from an FP32 run, when there was data to run.

    Raises:
        UsageError: A pin matches no node.
    """
    if recipe.low is None:
        nodes = _plan_fp32(index, recipe)
        return PrecisionPlan(recipe, nodes, notes=_note_random(index), pairs=_find_pairs(index))
    context = RuleContext(index, recipe.low, ranges or {})
    kept = _apply_rules(context, _make_rules(pins))
    movers = find_fp32_movers(context, set(kept))
    nodes = {}
    for scope, node in index.nodes():
        if not (context.float_inputs(scope, node) or context.float_outputs(scope, node)):
            continue
        if node.name in kept:
            nodes[node.name] = kept[node.name]
        elif node.name in movers:
            reason = "it moves or observes data between FP32 nodes"
            nodes[node.name] = NodeDecision(DType.FLOAT32, "neighbours", reason)
        else:
            reason = f"recipe {recipe.name}"
            nodes[node.name] = NodeDecision(recipe.low, "recipe", reason)
    constants = tuple(KeepWideConstantRule().find_constants(context))
    return PrecisionPlan(recipe, nodes, constants, _note_random(index), _find_pairs(index))


def _make_rules(pins: Sequence[str]) -> list[PrecisionRule]:
    return [
        KeepPinnedRule(pins),
        KeepUnsupportedTypeRule(),
        KeepEngineLimitRule(),
        KeepOperatorRule(),
        KeepQuantizationScaleRule(),
        KeepVarianceRule(),
        KeepSoftmaxRule(),
        KeepWideConstantRule(),
        KeepTinyConstantRule(),
        KeepShapeArithmeticRule(),
        KeepPositionRule(),
        KeepMeasuredRangeRule(),
    ]


def _apply_rules(context: RuleContext, rules: list[PrecisionRule]) -> dict[str, NodeDecision]:
    kept: dict[str, NodeDecision] = {}
    for rule in rules:
        for name, reason in rule.find(context):
            kept.setdefault(name, NodeDecision(DType.FLOAT32, type(rule).__name__, reason))
    return kept


def _plan_fp32(index: ModelIndex, recipe: Recipe) -> dict[str, NodeDecision]:
    reason = f"recipe {recipe.name}"
    return {
        node.name: NodeDecision(DType.FLOAT32, "recipe", reason)
        for scope, node in index.nodes()
        if any(scope.type_of(name) is DType.FLOAT32 for name in [*node.input, *node.output])
    }


def _note_random(index: ModelIndex) -> tuple[str, ...]:
    return tuple(
        f"{node.op_type} {node.name!r} is random; TensorRT ignores its seed"
        for _, node in index.nodes()
        if node.op_type in _RANDOM
    )


def _find_pairs(index: ModelIndex) -> frozenset[str]:
    return frozenset(node.name for _, node in index.nodes() if node.op_type in Q_DQ_OPERATORS)
