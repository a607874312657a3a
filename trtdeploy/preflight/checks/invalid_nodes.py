"""FindInvalidNodesCheck: nodes and constants that break the rules of ONNX."""

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
from trtdeploy.preflight.prepared_model import is_early_axis

INVALID_NODE = FindingKind("invalid-node", Severity.BLOCKER, Affects.BOTH)
EARLY_AXIS = FindingKind("axis-before-opset-13", Severity.BLOCKER, Affects.BASELINE)
DAMAGED_CONSTANT = FindingKind("damaged-constant", Severity.BLOCKER, Affects.BOTH)
INVALID_GRAPH = FindingKind("invalid-graph", Severity.BLOCKER, Affects.BOTH)

_NOT_DEFINED = ("No Op registered", "is deprecated in domain_version")
"""Openings of ONNX's messages about operators, which FindUnknownOperatorsCheck reports."""


class FindInvalidNodesCheck:
    """Find nodes with missing inputs or wrong attributes, damaged constants, cycles.

    Functions that call themselves and sparse tensors beyond their shape belong here too.
    """

    def find(self, context: CheckContext) -> Iterator[Finding]:
        """Yield one finding per node that the ONNX checker refuses."""
        for refusal in context.prepared.refusals:
            if any(words in refusal.reason for words in _NOT_DEFINED):
                continue
            if is_early_axis(refusal.place, refusal.reason):
                yield EARLY_AXIS.at(
                    refusal.place,
                    f"{refusal.place.op_type} has an axis from opset 13 on, but the file names "
                    f"opset {context.model.opset}; ONNX Runtime does not load it",
                    "Convert the FP32 model to opset 13 or newer, then quantize it.",
                )
                continue
            yield INVALID_NODE.at(
                refusal.place,
                f"ONNX does not allow this {refusal.place.op_type}: {refusal.reason.strip()}",
                "Correct the node, or export the model again with a current exporter.",
            )
        for name in context.prepared.damaged_constants:
            yield DAMAGED_CONSTANT.at(
                WHOLE_GRAPH,
                f"the data of constant {name!r} does not fit its shape and type",
                "The file is damaged; export the model again.",
            )
        for problem in context.prepared.problems:
            yield INVALID_GRAPH.at(
                WHOLE_GRAPH,
                f"the graph cannot be brought into plain form: {problem.strip()}",
                "Export the model again, without local functions and sparse tensors.",
            )
