"""What emulation cannot follow, and refuses."""

from __future__ import annotations

from onnx import NodeProto

from trtdeploy.core.dtypes import DType
from trtdeploy.core.errors import NotPossibleError
from trtdeploy.graph.index import ModelIndex, Scope
from trtdeploy.graph.model import ONNX_DOMAINS
from trtdeploy.precision.widening import NARROW, is_narrow_container, names_narrow_type

_CONTAINER_PREFIXES = ("Sequence", "Optional", "SplitToSequence")
"""Operators whose results may be sequences or optional values, which have no element type."""
_ELEMENT_OPERATORS = ("SequenceAt", "ConcatFromSequence")
"""Operators whose results are tensors from such a sequence."""


def refuse_untraceable_values(index: ModelIndex) -> None:
    """Raise where a narrow value could pass unseen: a false pass is worse than none.

    Raises:
        NotPossibleError: The type of a value that may be narrow is not known, bits of a narrow
            value are read, or a sequence of narrow tensors is an input or output.
    """
    for value in (*index.model.graph.input, *index.model.graph.output):
        if is_narrow_container(value.type):
            raise NotPossibleError(
                f"{value.name!r} holds several float16 or bfloat16 tensors, which cannot be "
                "emulated as an input or output",
                hint="Export the tensors one by one.",
            )
    for scope, node in index.nodes():
        _refuse_untraceable_node(scope, node)


def _refuse_untraceable_node(scope: Scope, node: NodeProto) -> None:
    touched = {scope.type_of(name) for name in (*node.input, *node.output) if name}
    if node.op_type == "BitCast" and NARROW & touched:
        raise NotPossibleError(
            f"BitCast {node.name!r} reads the bits of a 16-bit float, which emulation in FP32 "
            "does not have",
            hint="Keep it out of the model, or check parity on the device itself.",
        )
    for slot, name in enumerate(node.output):
        unknown = bool(name) and scope.type_of(name) is DType.UNDEFINED
        if unknown and _may_be_narrow(scope, node, slot):
            raise NotPossibleError(
                f"node {node.name!r} ({node.op_type}) makes {name!r}, which may be a 16-bit "
                "float, but its type is not known, so its rounding cannot be emulated",
                hint="Declare the type in the file's value_info, or check parity on the device.",
            )


def _may_be_narrow(scope: Scope, node: NodeProto, slot: int) -> bool:
    """Judge a result of unknown type by what it is made from."""
    if bodies := scope.bodies_of(node):
        inner = slot + 1 if node.op_type == "Loop" else slot  # a Loop's body says first: go on
        results = [(body, body.graph.output[inner].name) for body in bodies]
        return any(body.type_of(name) in NARROW for body, name in results)
    if node.domain in ONNX_DOMAINS and node.op_type in _ELEMENT_OPERATORS:
        return True
    if node.domain in ONNX_DOMAINS and node.op_type.startswith(_CONTAINER_PREFIXES):
        return False
    return names_narrow_type(node) or any(scope.type_of(name) in NARROW for name in node.input)
