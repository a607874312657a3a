"""FindUint8InsideCheck: uint8 values away from the borders of the model."""

from __future__ import annotations

from collections.abc import Iterator

from trtdeploy.core.dtypes import DType
from trtdeploy.graph.index import Scope
from trtdeploy.preflight.context import CheckContext
from trtdeploy.preflight.finding import Affects, Finding, FindingKind, Severity
from trtdeploy.preflight.prepared_model import CheckedNode

UINT8_INSIDE = FindingKind("uint8-inside", Severity.BLOCKER, Affects.ENGINE)

_READERS = frozenset({"Cast", "CastLike", "Identity"})
"""Operators that may read a uint8 model input (measured with TensorRT-RTX 1.7.1)."""
_QUANTIZERS = frozenset({"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"})
"""Operators whose uint8 tensors FindQuantizationCheck judges."""
_MAKERS = frozenset({"Cast", "CastLike", "ConstantOfShape", "EyeLike", "Identity"})


class FindUint8InsideCheck:
    """Find uint8 tensors that TensorRT cannot hold.

    TensorRT has uint8 for network inputs and outputs only: an input must go straight into a Cast,
    an output must come straight out of one. Constants are fine, because the parser widens them to
    INT32 together with what Gather, Concat and the like make of them.
    """

    def find(self, context: CheckContext) -> Iterator[Finding]:
        """Yield one finding per offending node."""
        if not context.target.uses_tensorrt:
            return
        engine = context.target.engine_title
        for checked in context.standard_nodes():
            if checked.node.op_type in _QUANTIZERS:
                continue
            read = _find_read_input(context, checked)
            made = _find_made_value(checked)
            if read:
                yield UINT8_INSIDE.at(
                    checked.place,
                    f"reads the uint8 input {read!r}; {engine} accepts uint8 at the border only, "
                    "and the first node behind it must be a Cast",
                    f"Move the Cast to FLOAT in front of this {checked.node.op_type}, right "
                    f"behind {read!r}.",
                )
            elif made:
                yield UINT8_INSIDE.at(
                    checked.place,
                    f"makes the uint8 value {made!r} in the middle of the graph; {engine} has "
                    "uint8 for network inputs and outputs only",
                    "Cast to BOOL (masks) or INT32 (numbers that stay within 0 to 255) instead of "
                    "UINT8; the results are the same.",
                )


def _find_read_input(context: CheckContext, checked: CheckedNode) -> str:
    if checked.node.op_type in _READERS:
        return ""
    main = context.prepared.index.main
    for name in checked.node.input:
        is_input = checked.scope.resolve(name) is main and name in main.inputs
        if is_input and main.type_of(name) is DType.UINT8:
            return name
    return ""


def _find_made_value(checked: CheckedNode) -> str:
    scope = checked.scope
    if checked.node.op_type not in _MAKERS:
        return ""  # other operators pass on what an input or a Cast brought in
    for name in checked.node.output:
        if name and scope.type_of(name) is DType.UINT8:
            if scope.parent is None and name in scope.outputs:
                continue
            if checked.node.op_type == "Identity" and _is_widened(scope, checked):
                continue
            return name
    return ""


def _is_widened(scope: Scope, checked: CheckedNode) -> bool:
    """True when the value comes from a constant, which the parser has widened to INT32."""
    return all(scope.constant_of(name) is not None for name in checked.node.input if name)
