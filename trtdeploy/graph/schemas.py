"""What the ONNX specification says about an operator's type parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from onnx import NodeProto, defs

from trtdeploy.core.dtypes import DType
from trtdeploy.graph.model import ONNX_DOMAINS

_TYPE_STRINGS = {
    DType.FLOAT32: "tensor(float)",
    DType.FLOAT16: "tensor(float16)",
    DType.BFLOAT16: "tensor(bfloat16)",
}


@dataclass(frozen=True)
class OperatorTypes:
    """Type parameters of one operator at one opset.

    ``inputs[i]`` and ``outputs[i]`` hold the set of types that formal parameter allows; a
    variadic last parameter stands for all further ones.
    """

    inputs: tuple[frozenset[str], ...]
    outputs: tuple[frozenset[str], ...]
    variadic_input: bool
    variadic_output: bool

    def input_allows(self, slot: int, dtype: DType) -> bool:
        """True when input ``slot`` may have element type ``dtype``."""
        return _allows(self.inputs, self.variadic_input, slot, dtype)

    def output_allows(self, slot: int, dtype: DType) -> bool:
        """True when output ``slot`` may have element type ``dtype``."""
        return _allows(self.outputs, self.variadic_output, slot, dtype)


def find_operator_types(node: NodeProto, opset: int) -> OperatorTypes | None:
    """Return the types of a standard operator; None for other domains and unknown names."""
    if node.domain not in ONNX_DOMAINS:
        return None
    return _find_types(node.op_type, opset)


def find_schema(node: NodeProto, opset: int) -> defs.OpSchema | None:
    """Return the specification of a standard operator; None for other domains and unknown names."""
    if node.domain not in ONNX_DOMAINS:
        return None
    return _find_schema(node.op_type, opset)


@lru_cache(maxsize=1024)
def _find_schema(op_type: str, opset: int) -> defs.OpSchema | None:
    try:
        return defs.get_schema(op_type, opset, "")
    except (defs.SchemaError, TypeError):  # TypeError: an opset number beyond 32 bits
        return None


@lru_cache(maxsize=1024)
def _find_types(op_type: str, opset: int) -> OperatorTypes | None:
    schema = _find_schema(op_type, opset)
    if schema is None:
        return None
    allowed_types = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}

    def allowed(parameters: Sequence[defs.OpSchema.FormalParameter]) -> tuple[frozenset[str], ...]:
        return tuple(frozenset(allowed_types.get(p.type_str, [p.type_str])) for p in parameters)

    variadic = defs.OpSchema.FormalParameterOption.Variadic
    return OperatorTypes(
        allowed(schema.inputs),
        allowed(schema.outputs),
        bool(schema.inputs) and schema.inputs[-1].option == variadic,
        bool(schema.outputs) and schema.outputs[-1].option == variadic,
    )


def _allows(
    parameters: tuple[frozenset[str], ...], variadic: bool, slot: int, dtype: DType
) -> bool:
    if slot >= len(parameters):
        if not (variadic and parameters):
            return False
        slot = len(parameters) - 1
    return _TYPE_STRINGS[dtype] in parameters[slot]
