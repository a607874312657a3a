"""The answer of the check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from trtdeploy.preflight.finding import Finding, Severity


@dataclass(frozen=True)
class CheckReport:
    """Everything the check found, most severe first, in graph order within a severity.

    Attributes:
        model: Path of the model.
        opset: Version of its default operator set.
        ir_version: Version of its file format.
        node_count: Nodes of all its graphs, bodies of If, Loop and Scan included.
        backend: What it was checked for: ``tensorrt``, ``tensorrt_rtx`` or ``onnxruntime``.
        engine: That compiler as people call it, e.g. ``TensorRT 10.3``.
        recipe: The precision recipe.
        device: The device as people call it.
        asked: Who said which operators the engine has: an installed parser, or a shipped table.
        findings: What was found; empty for a model without any remark.
        counts: How many findings there are of each severity.
    """

    model: str
    opset: int
    ir_version: int
    node_count: int
    backend: str
    engine: str
    recipe: str
    device: str
    asked: str
    findings: tuple[Finding, ...]
    counts: Mapping[str, int] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Count the findings."""
        found = Counter(finding.severity for finding in self.findings)
        counts = {severity.value: found[severity] for severity in Severity}
        object.__setattr__(self, "counts", counts)  # frozen from here on

    @property
    def blockers(self) -> tuple[Finding, ...]:
        """Findings that stop a build or the baseline."""
        return self.select(Severity.BLOCKER)

    @property
    def hazards(self) -> tuple[Finding, ...]:
        """Findings that may make the result wrong."""
        return self.select(Severity.HAZARD)

    @property
    def notes(self) -> tuple[Finding, ...]:
        """Findings the user has to know of."""
        return self.select(Severity.NOTE)

    def to_dict(self) -> dict[str, object]:
        """Return plain values, as ``--output json`` and report files show them."""
        return asdict(self)

    def select(self, severity: Severity) -> tuple[Finding, ...]:
        """Return the findings of one severity."""
        return tuple(finding for finding in self.findings if finding.severity is severity)
