"""FindInvalidNodesCheck: nodes that break the rules of their operator."""

from __future__ import annotations

from collections.abc import Iterator

from trtdeploy.preflight.context import CheckContext
from trtdeploy.preflight.finding import (
    WHOLE_GRAPH,
    Affects,
    Finding,
    FindingKind,
    Severity,
)

INVALID_NODE = FindingKind("invalid-node", Severity.BLOCKER, Affects.BOTH)
INVALID_FUNCTION = FindingKind("invalid-function", Severity.BLOCKER, Affects.BOTH)

_NOT_DEFINED = ("No Op registered", "is deprecated in domain_version")
"""Openings of ONNX's messages about operators, which FindUnknownOperatorsCheck reports."""


class FindInvalidNodesCheck:
    """Find nodes with missing inputs, missing attributes or attributes of a wrong type."""

    def find(self, context: CheckContext) -> Iterator[Finding]:
        """Yield one finding per node that the ONNX checker refuses."""
        for refusal in context.prepared.refusals:
            if any(words in refusal.reason for words in _NOT_DEFINED):
                continue
            yield INVALID_NODE.at(
                refusal.place,
                f"ONNX does not allow this {refusal.place.op_type}: {refusal.reason.strip()}",
                "Correct the node, or export the model again with a current exporter.",
            )
        if context.prepared.function_problem:
            yield INVALID_FUNCTION.at(
                WHOLE_GRAPH,
                "the model-local functions cannot be expanded: "
                + context.prepared.function_problem.strip(),
                "Export again without local functions.",
            )
