"""FindShapeConflictsCheck: nodes whose inputs fit together for no size at all."""

from __future__ import annotations

from collections.abc import Iterator

from trtdeploy.preflight.context import CheckContext
from trtdeploy.preflight.finding import Affects, Finding, FindingKind, Severity
from trtdeploy.preflight.shape_conflict import describe_inputs

SHAPE_CONFLICT = FindingKind("shape-conflict", Severity.BLOCKER, Affects.BOTH)


class FindShapeConflictsCheck:
    """Run ONNX shape inference with the symbols of the file and report what it refuses."""

    def find(self, context: CheckContext) -> Iterator[Finding]:
        """Yield one finding per node."""
        for key, reason in context.symbolic.errors.items():
            yield SHAPE_CONFLICT.at(
                context.place_of_key(key),
                f"{describe_inputs(context, key, context.symbolic)} do not fit together: {reason}",
                "Correct the shapes, or export the model again.",
            )
