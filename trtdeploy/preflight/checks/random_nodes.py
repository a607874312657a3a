"""FindRandomNodesCheck: nodes that give other values on every run."""

from __future__ import annotations

from collections.abc import Iterator

from trtdeploy.preflight.context import CheckContext
from trtdeploy.preflight.finding import Affects, Finding, FindingKind, Severity

RANDOM_NODE = FindingKind("random-node", Severity.HAZARD, Affects.BOTH)

RANDOM_OPERATORS = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli",
     "Multinomial"}
)  # fmt: skip


class FindRandomNodesCheck:
    """Find random number generators: two runs differ, so parity can fail without any error."""

    def find(self, context: CheckContext) -> Iterator[Finding]:
        """Yield one finding per node."""
        for checked in context.standard_nodes():
            if checked.node.op_type in RANDOM_OPERATORS:
                yield RANDOM_NODE.at(
                    checked.place,
                    "non-deterministic: TensorRT ignores its seed and ONNX Runtime draws other "
                    "numbers, so outputs that depend on it cannot be compared",
                    "Make the random tensor an input of the model, or a constant.",
                )
