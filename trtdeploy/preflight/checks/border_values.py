"""FindBorderValuesCheck: inputs and outputs that are no tensors, and inputs nobody reads."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ValueInfoProto

from trtdeploy.graph.model import walk_graphs
from trtdeploy.preflight.context import CheckContext
from trtdeploy.preflight.finding import (
    WHOLE_GRAPH,
    Affects,
    Finding,
    FindingKind,
    Severity,
)

NON_TENSOR_VALUE = FindingKind("non-tensor-value", Severity.BLOCKER, Affects.ENGINE)
UNTYPED_INPUT = FindingKind("untyped-input", Severity.BLOCKER, Affects.BOTH)
UNUSED_INPUT = FindingKind("unused-input", Severity.NOTE, Affects.ENGINE)

_KINDS = {
    "sequence_type": "a sequence",
    "map_type": "a map",
    "optional_type": "an optional value",
    "sparse_tensor_type": "a sparse tensor",
    "opaque_type": "an opaque value",
}


class FindBorderValuesCheck:
    """Look at every input and output of the model."""

    def find(self, context: CheckContext) -> Iterator[Finding]:
        """Yield findings in the order of the inputs, then the outputs."""
        graph = context.prepared.model.graph
        read = {name for g in walk_graphs(graph) for node in g.node for name in node.input}
        read |= {value.name for g in walk_graphs(graph) for value in g.output}
        for value in graph.input:
            if _has_no_type(value):
                yield UNTYPED_INPUT.at(
                    WHOLE_GRAPH,
                    f"the input {value.name!r} has no element type; nobody can load such a file",
                    "Export the model again.",
                )
            elif value.name not in read:
                yield UNUSED_INPUT.at(
                    WHOLE_GRAPH,
                    f"the input {value.name!r} is read by no node; it still needs shapes in "
                    "every optimization profile and a tensor in every run",
                    "Nothing to do; remove it from the export if callers should not feed it.",
                )
        if context.target.uses_tensorrt:
            yield from _check_kinds("input", graph.input, context.target.engine_title)
            yield from _check_kinds("output", graph.output, context.target.engine_title)


def _has_no_type(value: ValueInfoProto) -> bool:
    kind = value.type.WhichOneof("value")
    return kind is None or (kind == "tensor_type" and not value.type.tensor_type.elem_type)


def _check_kinds(role: str, values: object, engine: str) -> Iterator[Finding]:
    for value in values:  # type: ignore[attr-defined]
        kind = _KINDS.get(value.type.WhichOneof("value") or "")
        if kind:
            yield NON_TENSOR_VALUE.at(
                WHOLE_GRAPH,
                f"the {role} {value.name!r} is {kind}; {engine} passes tensors only",
                "Return tensors instead; pack or unpack outside the model.",
            )
