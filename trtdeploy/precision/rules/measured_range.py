"""KeepMeasuredRangeRule: values that were seen outside the narrow type's range."""

from __future__ import annotations

from collections.abc import Iterator

from trtdeploy.precision.context import RuleContext
from trtdeploy.precision.rules.rule import Kept

HEADROOM = 2.0
"""Calibration data is a sample; other inputs may be this much larger."""


class KeepMeasuredRangeRule:
    """Keep nodes that read or write a value which overflowed, or vanished, in an FP32 run."""

    def find(self, context: RuleContext) -> Iterator[Kept]:
        """Yield nodes around values outside the range; nothing without measured ranges."""
        for scope, node in context.index.nodes():
            values = [name for _, name in context.float_inputs(scope, node)]
            for name in values + context.float_outputs(scope, node):
                problem = _find_problem(context, context.ranges.get(name, 0.0))
                if problem:
                    yield node.name, f"{name!r} {problem}"


def _find_problem(context: RuleContext, amax: float) -> str:
    limits, low = context.limits, context.low.label
    if amax * HEADROOM > limits.max:
        return (
            f"reached {amax:.4g} in FP32; {low} ends at {limits.max:.5g} "
            f"and {HEADROOM:g}x headroom is kept"
        )
    if 0 < amax < limits.smallest_normal:
        return (
            f"never exceeded {amax:.3g} in FP32, "
            f"below the smallest normal {low} {limits.smallest_normal:.3g}"
        )
    return ""
