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

_ELEMENTWISE = frozenset({"Add", "Sub", "Mul", "Div", "Where", "Pow", "Max", "Min", "Sum", "Neg"})
_COPIERS = MOVERS | {"ConstantOfShape"}
_ADDITIVE = frozenset({"Add", "Sub", "Mul", "Where", "Pad", "ConstantOfShape", "ScatterND"})
_BOUNDS = frozenset({"Clip", "Min", "Max"})
_CARRIERS = _ADDITIVE | MOVERS | {"Max", "Min", "Neg", "Div"}
_SELECTORS = frozenset(
    {"Softmax", "LogSoftmax", "Hardmax", "ArgMax", "ReduceMax", "MaxPool", "GlobalMaxPool", "TopK"}
)
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
    * An additive mask (-1e12 on its way to a softmax or arg max) only has to be far below
      every score: clamp, because ``0 * -inf`` is NaN for each token that is *not* masked.
    * Anything else is a real weight: the node stays FP32 and so does the constant.
    """

    def find(self, context: RuleContext) -> Iterator[Kept]:
        """Yield readers of real weights out of range, and arithmetic on what they compute."""
        seen: set[str] = set()
        for use in _find_wide_uses(context):
            if _judge(context, use) is not None:
                continue
            reason = (
                f"its constant {use.name!r} holds {use.farthest:.4g}, "
                f"beyond {context.low.label}'s {context.limits.max:.5g}"
            )
            yield use.node.name, reason
            if use.node.op_type in _ELEMENTWISE | _COPIERS:
                for reader in walk_readers(use.scope, use.node, _computes_on, seen=seen):
                    if reader.node.op_type in _ELEMENTWISE:
                        yield reader.node.name, f"it works on values made of {use.name!r}"

    def find_constants(self, context: RuleContext) -> Iterator[ConstantDecision]:
        """Yield one decision per constant and kind of use."""
        seen: set[tuple[str, str]] = set()
        for use in _find_wide_uses(context):
            judged = _judge(context, use)
            action = "keep" if judged is None else "clamp"
            if (use.name, action) in seen:
                continue
            seen.add((use.name, action))
            limit, reason = judged or (
                None,
                f"a weight of {use.node.op_type} {use.node.name!r}; that node stays FP32",
            )
            yield ConstantDecision(use.name, use.farthest, action, limit, reason)


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


def _judge(context: RuleContext, use: _WideUse) -> tuple[float, str] | None:
    """Return (limit, reason) when the constant may be clamped, None when it is a real weight."""
    if _is_idle_bound(context, use):
        kind = f"a bound of {use.node.op_type} {use.node.name!r}"
        return context.limits.max, f"{kind} that never takes effect"
    if use.node.op_type in _ADDITIVE and _is_mask(context, use.tensor):
        selector = _find_selector(use.scope, use.node)
        if selector is not None:
            return context.limits.max * MASK_FRACTION, f"a mask on its way to {selector!r}"
    return None


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


def _find_selector(scope: Scope, node: NodeProto) -> str | None:
    """Return the softmax-like node that the constant ends in, through adds and moves only."""
    for reader in walk_readers(scope, node, _carries_mask, max_steps=_MAX_STEPS):
        if reader.node.op_type in _SELECTORS:
            return reader.node.name
    return None


def _carries_mask(reader: Reader) -> bool:
    return reader.node.op_type in _CARRIERS
