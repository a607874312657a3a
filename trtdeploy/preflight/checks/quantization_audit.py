"""FindQuantizationAuditCheck: what the Q/DQ nodes of a model will come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from trtdeploy.graph.layer_costs import measure_layer_costs
from trtdeploy.precision.audit.auditing import audit_graph
from trtdeploy.precision.audit.report import ObstacleKind, QuantizationAudit
from trtdeploy.preflight.context import CheckContext
from trtdeploy.preflight.finding import (
    WHOLE_GRAPH,
    Affects,
    Finding,
    FindingKind,
    Place,
    Severity,
)
from trtdeploy.preflight.labels import translate_keys

QUANTIZATION_AUDIT = FindingKind("quantization-audit", Severity.HAZARD, Affects.ENGINE)

_SHOWN = 3


class FindQuantizationAuditCheck:
    """Say whether a pre-quantized model will be faster for it, and what is in the way.

    A note when it probably will, a hazard when it probably will not.
    """

    def find(self, context: CheckContext) -> Iterator[Finding]:
        """Yield one finding for the model."""
        if not context.target.uses_tensorrt:
            return
        if not any(True for _ in context.quantization_nodes()):
            return
        audit = _audit(context)
        if not audit.is_quantized:
            return
        yield make_audit_finding(audit, context.prepared.labels)


def make_audit_finding(audit: QuantizationAudit, labels: dict[str, Place] | None = None) -> Finding:
    """Return what an audit comes to: a note when it will probably be faster, else a hazard.

    Args:
        audit: Where the Q/DQ pairs of a typed model lie, and what that costs.
        labels: What people call the nodes; None when the audit has their own names.
    """
    obstacles = _describe_obstacles(audit)
    text = audit.verdict + (f" In the way: {obstacles}." if obstacles else "")
    return QUANTIZATION_AUDIT.at(
        WHOLE_GRAPH,
        text if labels is None else translate_keys(labels, text),
        _suggest(audit),
        severity=Severity.NOTE if audit.is_probably_faster else None,
    )


def _audit(context: CheckContext) -> QuantizationAudit:
    """Audit the model at the sizes of the first optimization profile, else at those of the file."""
    sizes: dict[str, tuple[int, ...]] = {}
    for profile in context.optimization_profiles[:1]:
        sizes = {name: shape.at("opt") for name, shape in profile.shapes.items()}
    index = context.prepared.index
    return audit_graph(index, measure_layer_costs(index, sizes))


def _describe_obstacles(audit: QuantizationAudit) -> str:
    """Return the most frequent kinds with a count and an example each."""
    counts = _count_kinds(audit)
    examples = {obstacle.kind: obstacle.detail for obstacle in reversed(audit.obstacles)}
    return "; ".join(
        f"{kind} ({count}x, {examples[kind]})" for kind, count in counts.most_common(_SHOWN)
    )


def _suggest(audit: QuantizationAudit) -> str:
    remedies = [ObstacleKind(kind).remedy for kind, _ in _count_kinds(audit).most_common(_SHOWN)]
    return " ".join(remedies) or "Nothing to do; the report lists every layer."


def _count_kinds(audit: QuantizationAudit) -> Counter[str]:
    """Count what is in the way; a finding of its own says that integer biases are folded."""
    kinds = [obstacle.kind for obstacle in audit.obstacles]
    return Counter(kind for kind in kinds if kind != ObstacleKind.INTEGER_BIAS.value)
