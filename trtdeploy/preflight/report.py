"""The answer of the check."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from trtdeploy.preflight.finding import Finding, Severity
from trtdeploy.preflight.target import CheckTarget


@dataclass(frozen=True)
class CheckReport:
    """Everything the check found, most severe first, in graph order within a severity.

    Attributes:
        target: Engine, recipe and device it was checked for.
        model: Path of the model.
        opset: Version of its default operator set.
        ir_version: Version of its file format.
        node_count: Nodes of all its graphs, bodies of If, Loop and Scan included.
        asked: Who said which operators the engine has: an installed parser, or a shipped table.
        findings: What was found; empty for a model without any remark.
    """

    target: CheckTarget
    model: str
    opset: int
    ir_version: int
    node_count: int
    asked: str
    findings: tuple[Finding, ...]

    @property
    def blockers(self) -> tuple[Finding, ...]:
        """Findings that stop a build or the baseline."""
        return self._select(Severity.BLOCKER)

    @property
    def hazards(self) -> tuple[Finding, ...]:
        """Findings that may make the result wrong."""
        return self._select(Severity.HAZARD)

    @property
    def notes(self) -> tuple[Finding, ...]:
        """Findings the user has to know of."""
        return self._select(Severity.NOTE)

    def count(self) -> dict[str, int]:
        """Return how many findings there are of each severity."""
        found = Counter(finding.severity for finding in self.findings)
        return {severity.value: found[severity] for severity in Severity}

    def to_dict(self) -> dict[str, object]:
        """Return plain values, as ``--output json`` and report files show them."""
        return {
            "model": self.model,
            "opset": self.opset,
            "ir_version": self.ir_version,
            "node_count": self.node_count,
            "backend": self.target.backend,
            "engine": self.target.engine_title,
            "recipe": self.target.recipe.name,
            "device": self.target.device_title,
            "asked": self.asked,
            "counts": self.count(),
            "findings": [finding.to_dict() for finding in self.findings],
        }

    def _select(self, severity: Severity) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.severity is severity)
