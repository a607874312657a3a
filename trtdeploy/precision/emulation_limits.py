"""What emulation cannot follow, and refuses."""

from __future__ import annotations

from collections.abc import Iterable

from onnx import NodeProto

from trtdeploy.core.dtypes import DType
from trtdeploy.core.errors import NotPossibleError
from trtdeploy.graph.index import ModelIndex, Scope
from trtdeploy.graph.model import ONNX_DOMAINS, subgraphs_of
from trtdeploy.precision.widening import NARROW, is_narrow_container, names_narrow_type

_CONTAINER_PREFIXES = ("Sequence", "Optional", "SplitToSequence")
"""Operators whose results may be sequences or optional values, which have no element type."""


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
        if not subgraphs_of(node):
            _refuse_untraceable_node(scope, node)


def _refuse_untraceable_node(scope: Scope, node: NodeProto) -> None:
    reads = {scope.type_of(name) for name in node.input if name}
    makes = {name: scope.type_of(name) for name in node.output if name}
    if node.op_type == "BitCast" and NARROW & (reads | set(makes.values())):
        raise NotPossibleError(
            f"BitCast {node.name!r} reads the bits of a 16-bit float, which emulation in FP32 "
            "does not have",
            hint="Keep it out of the model, or check parity on the device itself.",
        )
    unknown = [name for name, dtype in makes.items() if dtype is DType.UNDEFINED]
    if unknown and _may_hide_a_narrow_value(node, reads):
        raise NotPossibleError(
            f"node {node.name!r} ({node.op_type}) makes {unknown[0]!r}, which may be a 16-bit "
            "float, but its type is not known, so its rounding cannot be emulated",
            hint="Declare the type in the file's value_info, or check parity on the device.",
        )


def _may_hide_a_narrow_value(node: NodeProto, reads: Iterable[DType]) -> bool:
    if node.domain in ONNX_DOMAINS and node.op_type in ("SequenceAt", "ConcatFromSequence"):
        return True
    if node.domain in ONNX_DOMAINS and node.op_type.startswith(_CONTAINER_PREFIXES):
        return False
    return not NARROW.isdisjoint(reads) or names_narrow_type(node)
