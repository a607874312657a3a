"""FindQuantizationCheck: Q/DQ nodes made for another runtime."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trtdeploy.core.dtypes import DType
from trtdeploy.graph.passes.fold_integer_bias import fold_constant, needs_folding
from trtdeploy.preflight.context import CheckContext, input_name
from trtdeploy.preflight.finding import Affects, Finding, FindingKind, Severity
from trtdeploy.preflight.prepared_model import CheckedNode

INT32_DEQUANTIZE = FindingKind("int32-dequantize", Severity.BLOCKER, Affects.ENGINE)
SCALAR_DEQUANTIZE = FindingKind("scalar-dequantize", Severity.BLOCKER, Affects.ENGINE)
NONZERO_ZERO_POINT = FindingKind("nonzero-zero-point", Severity.BLOCKER, Affects.ENGINE)
UINT8_QUANTIZATION = FindingKind("uint8-quantization", Severity.BLOCKER, Affects.ENGINE)
QUANTIZED_TYPE = FindingKind("quantized-type", Severity.BLOCKER, Affects.ENGINE)
INTEGER_QUANTIZE = FindingKind("integer-quantize", Severity.BLOCKER, Affects.ENGINE)

_ZERO_POINT = 2
_SHOWN = 3
_FLOATS = frozenset({DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16, DType.FLOAT64, DType.UNDEFINED})
_QUANTIZED = frozenset(
    {DType.INT8, DType.INT4, DType.FLOAT8E4M3FN, DType.FLOAT4E2M1, DType.UNDEFINED}
)
_REPORTED_ELSEWHERE = frozenset({DType.UINT8, DType.INT32})
_RECALIBRATE = (
    "Calibrate again with symmetric int8 for activations and weights (zero point 0), or start "
    "from the FP32 model; dropping the zero point would change the results."
)


class FindQuantizationCheck:
    """Find Q/DQ nodes that TensorRT refuses or would compute differently.

    TensorRT quantizes floating point symmetrically to int8 or fp8: no int32 biases, no zero points
    other than 0, no uint8 (which its parser silently reads as int8). What a build folds to
    floating point, bit for bit, is a note.
    Source: onnx-tensorrt docs/operators.md ("zero_point must be 0"); measured with RTX 1.7.1.
    """

    def find(self, context: CheckContext) -> Iterator[Finding]:
        """Yield the first reason of each node; nodes sharing a zero point are reported once."""
        if not context.target.uses_tensorrt:
            return
        seen: set[str] = set()
        folded: dict[FindingKind, list[CheckedNode]] = {}
        for checked in context.quantization_nodes():
            if needs_folding(checked.scope, checked.node):
                yield from _check_constant(context, checked, folded)
                continue
            yield from _check_source(context, checked)
            yield from _check_zero_point(context, checked, seen)
        for kind, nodes in folded.items():
            yield _report_folded(context, kind, nodes)


def _check_constant(
    context: CheckContext, checked: CheckedNode, folded: dict[FindingKind, list[CheckedNode]]
) -> Iterator[Finding]:
    """Sort a constant that TensorRT cannot dequantize into ``folded``, or yield why it stays."""
    is_int32 = checked.scope.type_of(input_name(checked.node, 0)) is DType.INT32
    kind = INT32_DEQUANTIZE if is_int32 else SCALAR_DEQUANTIZE
    result = fold_constant(context.prepared.index, checked.scope, checked.node)
    if result.values is not None:
        folded.setdefault(kind, []).append(checked)
        return
    yield kind.at(
        checked.place,
        f"{_say_what_is_wrong(context, checked, kind)}; it cannot be folded to floating point, "
        f"because {result.obstacle}",
        "Quantize again with a floating-point bias (ONNX Runtime: QuantizeBias=False), or store "
        "integers times scale as a FLOAT initializer.",
    )


def _say_what_is_wrong(context: CheckContext, checked: CheckedNode, kind: FindingKind) -> str:
    source, engine = input_name(checked.node, 0), context.target.engine_title
    if kind is INT32_DEQUANTIZE:
        return (
            f"dequantizes the int32 tensor {source!r} (a bias); {engine} dequantizes 8-bit and "
            "narrower types only"
        )
    return f"dequantizes {source!r}, a constant without axes, which {engine} does not build"


def _report_folded(context: CheckContext, kind: FindingKind, nodes: list[CheckedNode]) -> Finding:
    first, *others = nodes
    shown = ", ".join(repr(checked.place.node) for checked in others[:_SHOWN])
    rest = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
    also = f" (so do {shown}{rest})" if others else ""
    return kind.at(
        first.place,
        f"{_say_what_is_wrong(context, first, kind)}{also}; the build folds it to a "
        "floating-point initializer, bit for bit",
        "Nothing to do; for other tools, multiply the integers by their scale and store the "
        "result as a FLOAT initializer.",
        severity=Severity.NOTE,
    )


def _check_source(context: CheckContext, checked: CheckedNode) -> Iterator[Finding]:
    source = input_name(checked.node, 0)
    dtype = checked.scope.type_of(source)
    if checked.node.op_type == "QuantizeLinear" and dtype not in _FLOATS:
        yield INTEGER_QUANTIZE.at(
            checked.place,
            f"quantizes {source!r}, which is {dtype.label}; {context.target.engine_title} "
            "quantizes floating point only",
            "Cast the value to FLOAT first, or take the Q/DQ pair away.",
        )
    quantized = source if checked.node.op_type != "QuantizeLinear" else checked.node.output[0]
    dtype = checked.scope.type_of(quantized)
    if dtype not in _QUANTIZED | _REPORTED_ELSEWHERE:
        yield QUANTIZED_TYPE.at(
            checked.place,
            f"{quantized!r} is quantized to {dtype.label}; {context.target.engine_title} quantizes "
            "to int8, fp8 (float8e4m3fn) and narrower",
            "Quantize to int8 or fp8.",
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
