"""FindQuantizationScalesCheck: scales and zero points that do not fit what they scale."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from onnx import NodeProto

from trtdeploy.graph.attributes import integer_of, value_of
from trtdeploy.graph.constant_values import read_constant
from trtdeploy.graph.index import Scope
from trtdeploy.graph.passes.fold_integer_bias import needs_folding
from trtdeploy.graph.shape_inference import Dims
from trtdeploy.preflight.context import CheckContext, input_name
from trtdeploy.preflight.finding import Affects, Finding, FindingKind, Severity
from trtdeploy.preflight.prepared_model import CheckedNode

BAD_SCALE = FindingKind("bad-scale", Severity.BLOCKER, Affects.ENGINE)
SCALE_SHAPE = FindingKind("scale-shape", Severity.BLOCKER, Affects.ENGINE)
RUNTIME_SCALE = FindingKind("runtime-scale", Severity.BLOCKER, Affects.ENGINE)

_SCALE, _ZERO_POINT = 1, 2
_DYNAMIC = (
    "Use static quantization: scales and zero points are constants of the model, from calibration."
)


class FindQuantizationScalesCheck:
    """Find scales of the wrong number, along a wrong axis, not positive, or not constant.

    Measured with TensorRT-RTX 1.7.1, which refuses each (and crashes on a scale that is computed
    at run time), but for infinite scales.
    """

    def find(self, context: CheckContext) -> Iterator[Finding]:
        """Yield the first reason of each node."""
        if not context.target.uses_tensorrt:
            return
        for checked in context.quantization_nodes():
            if needs_folding(checked.scope, checked.node):
                continue  # another check says what becomes of it
            findings = (_check_sources, _check_positive, _check_shape)
            found = next((f for check in findings for f in check(context, checked)), None)
            if found is not None:
                yield found


def _check_sources(context: CheckContext, checked: CheckedNode) -> Iterator[Finding]:
    for slot, role in ((_SCALE, "scale"), (_ZERO_POINT, "zero point")):
        name = input_name(checked.node, slot)
        if name and not _is_known(context, checked.scope, name):
            yield RUNTIME_SCALE.at(
                checked.place,
                f"its {role} {name!r} is computed at run time; {context.target.engine_title} "
                "needs it when the engine is built",
                _DYNAMIC,
            )


def _is_known(context: CheckContext, scope: Scope, name: str) -> bool:
    """True for a value that constants, and sizes that are fixed, alone decide."""
    pending, seen = [(scope, name)], set()
    while pending:
        where, current = pending.pop()
        owner = where.resolve(current)
        if owner is None:
            continue  # nobody defines it; another check says so
        if (id(owner), current) in seen or current in owner.initializers:
            continue
        seen.add((id(owner), current))
        producer = owner.producers.get(current)
        if producer is None:
            return False  # an input of the model, or a value of a loop
        if (
            producer.op_type != "Shape"
            or context.symbolic.known_shape_of(producer.input[0]) is None
        ):
            pending.extend((owner, source) for source in producer.input if source)
    return True


def _check_positive(context: CheckContext, checked: CheckedNode) -> Iterator[Finding]:
    name = input_name(checked.node, _SCALE)
    values = read_constant(context.prepared.model, checked.scope, name)
    if values is None:
        return
    numbers = values.astype(np.float32)
    if not (numbers > 0).all():
        yield BAD_SCALE.at(
            checked.place,
            f"the scale {name!r} holds a value that is 0, negative or not a number; "
            f"{context.target.engine_title} needs scales above 0",
            "Calibrate again; for a channel that is always 0 any positive scale is right.",
        )
    elif np.isinf(numbers).any():
        yield BAD_SCALE.at(
            checked.place,
            f"the scale {name!r} holds infinity: every value becomes 0, or not a number",
            "Calibrate again without samples that hold infinities; an attention mask of -inf is "
            "no activation to quantize.",
            severity=Severity.HAZARD,
        )


def _check_shape(context: CheckContext, checked: CheckedNode) -> Iterator[Finding]:
    reason = _find_misfit(context, checked)
    if reason:
        yield SCALE_SHAPE.at(
            checked.place,
            f"{reason}; {context.target.engine_title} refuses that",
            "Give the node one scale, or one per index of its axis, and a zero point of the same "
            "shape.",
        )


def _find_misfit(context: CheckContext, checked: CheckedNode) -> str:
    """Return how scale, zero point and axis contradict each other or the tensor; empty if not."""
    node, scope = checked.node, checked.scope
    scale_name, zero_point_name = input_name(node, _SCALE), input_name(node, _ZERO_POINT)
    scale = _sizes_of(scope, scale_name)
    if scale is None:
        return ""
    count = math.prod(scale)
    zero_point = _sizes_of(scope, zero_point_name)
    if not count:
        return f"the scale {scale_name!r} is empty"
    if zero_point is not None and math.prod(zero_point) != count:
        return (
            f"the scale {scale_name!r} has {count} values and the zero point {zero_point_name!r} "
            f"{math.prod(zero_point)}"
        )
    dims = context.symbolic.shape_of(input_name(node, 0))
    return "" if count == 1 or dims is None else _compare_with_tensor(node, scale, dims)


def _compare_with_tensor(node: NodeProto, scale: tuple[int, ...], dims: Dims) -> str:
    source, axis = node.input[0], integer_of(node, "axis", 1)
    is_blocked = bool(value_of(node, "block_size"))
    place = axis + len(dims) if axis < 0 else axis
    if len(scale) != (len(dims) if is_blocked else 1):
        return f"the scale of {source!r} has {len(scale)} axes"
    if not 0 <= place < len(dims):
        return f"axis is {axis}, but {source!r} has {len(dims)} axes"
    size, count = dims[place], scale[place] if is_blocked else scale[0]
    if not isinstance(size, int):
        return f"{count} scales run along axis {axis} of {source!r}, whose size is not fixed"
    fits = size % count == 0 if is_blocked else size == count
    return "" if fits else f"{count} scales run along axis {axis} of {source!r}, of size {size}"


def _sizes_of(scope: Scope, name: str) -> tuple[int, ...] | None:
    """Return the shape of a constant; None for everything else."""
    constant = scope.constant_of(name) if name else None
    return tuple(constant.dims) if constant is not None else None
