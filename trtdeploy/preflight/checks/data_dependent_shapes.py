"""FindDataDependentShapesCheck: operators whose output size depends on the data."""

from __future__ import annotations

from collections.abc import Iterator

from trtdeploy.preflight.context import CheckContext
from trtdeploy.preflight.finding import Affects, Finding, FindingKind, Severity
from trtdeploy.preflight.operator_table import OperatorStatus

DATA_DEPENDENT_SHAPE = FindingKind("data-dependent-shape", Severity.HAZARD, Affects.ENGINE)

DATA_DEPENDENT_OPERATORS = frozenset({"NonZero", "NonMaxSuppression", "Compress", "Unique"})


class FindDataDependentShapesCheck:
    """Find outputs whose size is known only after the run.

    TensorRT reserves memory for the largest possible output, and results that reach a model output
    need an output allocator at run time.
    """

    def find(self, context: CheckContext) -> Iterator[Finding]:
        """Yield one finding per node that the engine can run at all."""
        if not context.target.uses_tensorrt:
            return
        for checked in context.standard_nodes():
            operator = checked.node.op_type
            if operator not in DATA_DEPENDENT_OPERATORS:
                continue
            if context.engine_status_of(operator) is not OperatorStatus.SUPPORTED:
                continue
            if all(checked.scope.constant_of(name) is not None for name in checked.node.input):
                continue
            yield DATA_DEPENDENT_SHAPE.at(
                checked.place,
                "the size of its output depends on the data: memory is reserved for the worst "
                "case, and an output of that size needs an output allocator at run time",
                "Prefer a fixed number of results (TopK, or padding and a mask).",
            )
