"""FindTypeRulesCheck: operators fed with element types that ONNX does not allow them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from onnx import defs, helper

from trtdeploy.core.dtypes import DType
from trtdeploy.preflight.context import CheckContext
from trtdeploy.preflight.finding import Affects, Finding, FindingKind, Severity
from trtdeploy.preflight.prepared_model import CheckedNode

INVALID_TYPE = FindingKind("invalid-type", Severity.BLOCKER, Affects.BOTH)

_VARIADIC = defs.OpSchema.FormalParameterOption.Variadic


class FindTypeRulesCheck:
    """Find arithmetic on booleans, FLOAT meeting FLOAT16, and other breaches of the type rules.

    ONNX Runtime refuses such a file when it loads it; TensorRT's parser stops at the node.
    """

    def find(self, context: CheckContext) -> Iterator[Finding]:
        """Yield one finding per node."""
        opset = context.prepared.model.opset
        for checked in context.standard_nodes():
            reason = _find_breach(checked, opset)
            if reason:
                yield INVALID_TYPE.at(checked.place, reason, _suggest(reason))


def _suggest(reason: str) -> str:
    if " bool" in reason:
        return "Cast the booleans to INT32 or FLOAT first, or use And, Or, Not."
    return "Insert a Cast so that the types agree."


def _find_breach(checked: CheckedNode, opset: int) -> str:
    parameters = _read_parameters(checked.node.op_type, opset)
    bound: dict[str, tuple[str, DType]] = {}
    for slot, name in enumerate(checked.node.input):
        dtype = checked.scope.type_of(name) if name else DType.UNDEFINED
        if not parameters or dtype is DType.UNDEFINED:
            continue
        variable, allowed, is_homogeneous = parameters[min(slot, len(parameters) - 1)]
        if _spell(dtype) not in allowed:
            return (
                f"input {name!r} is {dtype.label}, which ONNX does not allow for "
                f"{checked.node.op_type}"
            )
        first, agreed = bound.setdefault(variable, (name, dtype))
        if is_homogeneous and agreed is not dtype:
            return (
                f"input {first!r} is {agreed.label} and input {name!r} is {dtype.label}; "
                f"{checked.node.op_type} needs one type for both"
            )
    return ""


@lru_cache(maxsize=1024)
def _read_parameters(op_type: str, opset: int) -> tuple[tuple[str, frozenset[str], bool], ...]:
    """Return (type variable, allowed types, one type for all) per formal input."""
    try:
        schema = defs.get_schema(op_type, opset, "")
    except (defs.SchemaError, TypeError):
        return ()
    return tuple(
        (
            parameter.type_str,
            frozenset(parameter.types),
            parameter.option != _VARIADIC or parameter.is_homogeneous,
        )
        for parameter in schema.inputs
    )


@lru_cache(maxsize=64)
def _spell(dtype: DType) -> str:
    """Return the type as schemas write it, e.g. ``tensor(float)``."""
    return f"tensor({helper.tensor_dtype_to_string(dtype.code).rpartition('.')[2].lower()})"
