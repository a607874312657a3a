"""FindQuantizationCheck: Q/DQ nodes made for another runtime."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trtdeploy.core.dtypes import DType
from trtdeploy.preflight.context import CheckContext, input_name
from trtdeploy.preflight.finding import Affects, Finding, FindingKind, Severity
from trtdeploy.preflight.prepared_model import CheckedNode

INT32_DEQUANTIZE = FindingKind("int32-dequantize", Severity.BLOCKER, Affects.ENGINE)
NONZERO_ZERO_POINT = FindingKind("nonzero-zero-point", Severity.BLOCKER, Affects.ENGINE)
UINT8_QUANTIZATION = FindingKind("uint8-quantization", Severity.BLOCKER, Affects.ENGINE)
BAD_SCALE = FindingKind("bad-scale", Severity.BLOCKER, Affects.ENGINE)

_SCALE, _ZERO_POINT = 1, 2
_SHOWN = 3
_RECALIBRATE = (
    "Calibrate again with symmetric int8 for activations and weights (zero point 0), or start "
    "from the FP32 model; dropping the zero point would change the results."
)


class FindQuantizationCheck:
    """Find Q/DQ nodes that TensorRT refuses or would compute differently.

    TensorRT quantizes symmetrically to int8: no int32 biases, no zero points other than 0, no
    uint8 (which its parser silently reads as int8), and scales above 0.
    Source: onnx-tensorrt docs/operators.md ("zero_point must be 0"); measured with RTX 1.7.1.
    """

    def find(self, context: CheckContext) -> Iterator[Finding]:
        """Yield the first reason of each node; nodes sharing a zero point are reported once."""
        if not context.target.uses_tensorrt:
            return
        seen: set[str] = set()
        for checked in context.standard_nodes():
            if checked.node.op_type not in ("QuantizeLinear", "DequantizeLinear"):
                continue
            yield from _check_bias(context, checked)
            yield from _check_zero_point(context, checked, seen)
            yield from _check_scale(context, checked)


def _check_bias(context: CheckContext, checked: CheckedNode) -> Iterator[Finding]:
    source = input_name(checked.node, 0)
    if checked.node.op_type != "DequantizeLinear":
        return
    if checked.scope.type_of(source) is DType.INT32:
        yield INT32_DEQUANTIZE.at(
            checked.place,
            f"dequantizes the int32 tensor {source!r} (a bias); {context.target.engine_title} "
            "dequantizes 8-bit and narrower types only",
            "Fold it to FP32: multiply the integers by their scale, store the result as a FLOAT "
            "initializer and drop this node. The results stay bit-identical.",
        )


def _check_zero_point(
    context: CheckContext, checked: CheckedNode, seen: set[str]
) -> Iterator[Finding]:
    node, scope = checked.node, checked.scope
    name = input_name(node, _ZERO_POINT)
    values = context.constant_of(scope, name)
    quantized = node.output[0] if node.op_type == "QuantizeLinear" else input_name(node, 0)
    if values is not None and np.count_nonzero(values.astype(np.float32)):
        if name in seen:
            return
        seen.add(name)
        shown = f"{values.ravel()[0]}" if values.size == 1 else f"{values.size} values, not all 0"
        yield NONZERO_ZERO_POINT.at(
            checked.place,
            f"the zero point {name!r} is {shown}; {context.target.engine_title} quantizes "
            f"symmetrically and needs 0{_name_others(context, checked, name)}",
            _RECALIBRATE,
        )
    elif DType.UINT8 in (scope.type_of(quantized), scope.type_of(name) if name else None):
        if (name or quantized) in seen:
            return
        seen.add(name or quantized)
        yield UINT8_QUANTIZATION.at(
            checked.place,
            f"{quantized!r} is quantized to uint8; {context.target.engine_title} knows int8 only "
            "and its parser reads the numbers as int8, so everything above 127 saturates",
            _RECALIBRATE,
        )


def _name_others(context: CheckContext, checked: CheckedNode, zero_point: str) -> str:
    others = [
        context.place_of(use.node).node
        for use in checked.scope.uses_of(zero_point)
        if use.node is not checked.node
    ]
    if not others:
        return ""
    shown = ", ".join(repr(name) for name in others[:_SHOWN])
    rest = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
    return f" (also read by {shown}{rest})"


def _check_scale(context: CheckContext, checked: CheckedNode) -> Iterator[Finding]:
    name = input_name(checked.node, _SCALE)
    values = context.constant_of(checked.scope, name)
    if values is None or (values.astype(np.float32) > 0).all():
        return
    yield BAD_SCALE.at(
        checked.place,
        f"the scale {name!r} holds a value that is 0, negative or not a number; "
        f"{context.target.engine_title} needs scales above 0",
        "Calibrate again; for a channel that is always 0 any positive scale is right.",
    )
