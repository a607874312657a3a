"""KeepWideConstantRule: constants beyond the narrow type's range, and which may be clamped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from onnx import NodeProto, TensorProto

from trtdeploy.graph.index import Scope
from trtdeploy.graph.weights import WeightRange
from trtdeploy.precision.context import RuleContext
from trtdeploy.precision.neighbours import MOVERS
from trtdeploy.precision.plan import ConstantDecision
from trtdeploy.precision.rules.readers import Reader, walk_readers
from trtdeploy.precision.rules.rule import Kept

MASK_FRACTION = 7 / 16
"""Clamped masks use this part of the range: two masks added together still do not overflow."""
DROWNING = 1e11
"""Added to scores up to some thousands, a mask this large leaves nothing of them in FP32 (2^24)."""

_ELEMENTWISE = frozenset({"Add", "Sub", "Mul", "Div", "Where", "Pow", "Max", "Min", "Sum", "Neg"})
_COPIERS = MOVERS | {"ConstantOfShape"}
_ADDITIVE = frozenset({"Add", "Sub", "Mul", "Where", "Pad", "ConstantOfShape", "ScatterND"})
_CARRIERS = _ADDITIVE | MOVERS | {"Max", "Min", "Neg", "Div"}
_SUMS = frozenset({"Add", "Sub", "Sum"})
_SOFTMAX = frozenset({"Softmax", "LogSoftmax", "Hardmax"})
_SELECTORS = _SOFTMAX | {"ArgMax", "ReduceMax", "MaxPool", "GlobalMaxPool", "TopK"}
_MAX_STEPS = 24


@dataclass(frozen=True)
class _WideUse:
    scope: Scope
    node: NodeProto
    tensor: TensorProto
    name: str
    range: WeightRange

    @property
    def farthest(self) -> float:
        """The value farthest out of range."""
        return max(self.range.smallest, self.range.largest, key=abs)


class KeepWideConstantRule:
    """Decide over each use of a constant that would become infinite.

    * A bound of Clip, Min or Max beyond the range never takes effect: clamp to the range.
    * A mask (-1e12 on its way to a softmax or arg max) that replaces scores only has to be far
      below the others: clamp, because ``0 * -inf`` is NaN for each token that is *not* masked.
    * A mask that is added to scores must also drown them, or a row that is masked entirely
      would not come out uniform. No FP16 mask does that where the sum is taken in FP32, as in
      fused attention: the sum and the softmax stay FP32, and the fusion survives it.
    * Anything else is a real weight: the node stays FP32 and so does the constant.
    """

    def find(self, context: RuleContext) -> Iterator[Kept]:
        """Yield readers of constants that are not clamped, and arithmetic on what they compute."""
        seen: set[str] = set()
        for use in _find_wide_uses(context):
            if _judge(context, use)[0] is not None:
                continue
            reason = (
                f"its constant {use.name!r} holds {use.farthest:.4g}, "
                f"beyond {context.low.label}'s {context.limits.max:.5g}"
            )
            yield use.node.name, reason
            if use.node.op_type in _ELEMENTWISE | _COPIERS:
                for reader in walk_readers(use.scope, use.node, _computes_on, seen=seen):
                    if reader.node.op_type in _ELEMENTWISE | _SOFTMAX:
                        yield reader.node.name, f"it works on values made of {use.name!r}"

    def find_constants(self, context: RuleContext) -> Iterator[ConstantDecision]:
        """Yield one decision per constant and kind of use."""
        seen: set[tuple[str, str]] = set()
        for use in _find_wide_uses(context):
            limit, reason = _judge(context, use)
            action = "keep" if limit is None else "clamp"
            if (use.name, action) not in seen:
                seen.add((use.name, action))
                yield ConstantDecision(use.name, repr(use.farthest), action, limit, reason)


def _computes_on(reader: Reader) -> bool:
    return reader.node.op_type in _ELEMENTWISE | MOVERS


def _find_wide_uses(context: RuleContext) -> Iterator[_WideUse]:
    for scope, node in context.index.nodes():
        for tensor, name in _constants_of(context, scope, node):
            found = context.measure(tensor)
            if found.amax >= context.limits.overflow:
                yield _WideUse(scope, node, tensor, name, found)


def _constants_of(
    context: RuleContext, scope: Scope, node: NodeProto
) -> Iterator[tuple[TensorProto, str]]:
    for _, name in context.float_inputs(scope, node):
        tensor = scope.constant_of(name)
        if tensor is not None:
            yield tensor, name
    if node.op_type == "ConstantOfShape":
        for attribute in node.attribute:
            if attribute.t.data_type == TensorProto.FLOAT:
                yield attribute.t, f"{node.name}.value"


def _judge(context: RuleContext, use: _WideUse) -> tuple[float | None, str]:
    """Return to which magnitude the constant may be clamped, None when it must stay; and why."""
    place = f"{use.node.op_type} {use.node.name!r}"
    if _is_idle_bound(context, use):
        return context.limits.max, f"a bound of {place} that never takes effect"
    if use.node.op_type in _ADDITIVE and _is_mask(context, use.tensor):
        readers = list(walk_readers(use.scope, use.node, _carries_mask, max_steps=_MAX_STEPS))
        selector = next((r.node.name for r in readers if r.node.op_type in _SELECTORS), None)
        limit = context.limits.max * MASK_FRACTION
        if selector is not None:
            if limit >= DROWNING or not any(
                _adds_to_data(*step) for step in [(use.scope, use.node, use.name), *readers]
            ):
                return limit, f"a mask on its way to {selector!r}"
            return None, f"a mask that is added to the scores of {selector!r} in FP32"
    return None, f"a weight of {place}; that node stays FP32"


def _adds_to_data(scope: Scope, node: NodeProto, name: str) -> bool:
    return node.op_type in _SUMS and any(
        other != name and scope.constant_of(other) is None for other in node.input
    )


def _is_idle_bound(context: RuleContext, use: _WideUse) -> bool:
    """True for a lower bound below the range, or an upper bound above it."""
    above = use.range.largest >= context.limits.overflow
    below = use.range.smallest <= -context.limits.overflow
    operands = list(use.node.input)
    if use.node.op_type == "Clip" and use.name in operands[1:]:
        return not (above if operands.index(use.name) == 1 else below)
    if use.node.op_type == "Max":
        return not above
    return use.node.op_type == "Min" and not below


def _is_mask(context: RuleContext, tensor: TensorProto) -> bool:
    """True when everything in range is 0 or 1: a mask, not a table of weights."""
    for chunk in context.index.model.iterate_values(tensor):
        inside = chunk[np.abs(chunk) < context.limits.overflow]
        if not ((inside == 0) | (inside == 1)).all():
            return False
    return True


def _carries_mask(reader: Reader) -> bool:
    return reader.node.op_type in _CARRIERS
