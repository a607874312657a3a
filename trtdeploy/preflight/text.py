"""Sizes, findings and reports as people read them, in 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from trtdeploy.core.tensors import Dim
from trtdeploy.preflight.finding import Finding, Severity
from trtdeploy.preflight.report import CheckReport

_WIDTH = 79


def format_dims(dims: Sequence[Dim | None] | None) -> str:
    """Return ``[batch, ?, 16]``, ``(scalar)`` for rank 0, ``(rank unknown)`` for None."""
    if dims is None:
        return "(rank unknown)"
    if not dims:
        return "(scalar)"
    return f"[{', '.join('?' if dim is None else str(dim) for dim in dims)}]"


def summarize(report: CheckReport) -> str:
    """Return e.g. ``no blockers, 2 hazards, 1 note``."""
    parts = []
    for severity, count in report.counts.items():
        if count or severity == Severity.BLOCKER.value:
            parts.append(f"{count or 'no'} {severity}{'' if count == 1 else 's'}")
    return ", ".join(parts)


def describe_place(finding: Finding) -> str:
    """Return the node and its operator, e.g. ``conv1 (Conv)``."""
    domain = f"{finding.domain}." if finding.domain else ""
    operator = f" ({domain}{finding.op_type})" if finding.op_type else ""
    return f"{finding.node}{operator}"


def describe_finding(finding: Finding) -> str:
    """Return place, reason and remedy on one line."""
    place = f"{describe_place(finding)}: " if finding.node else ""
    remedy = f" Remedy: {finding.remedy}" if finding.remedy else ""
    return f"{place}{finding.message} (affects the {finding.affects.value}).{remedy}"


def render_report(report: CheckReport) -> str:
    """Return every finding as a paragraph, then the count and who was asked."""
    paragraphs = [_render(finding) for finding in report.findings]
    asked = f"Operators: {report.asked}. " if report.asked else ""
    closing = f"{summarize(report)} for {report.engine} {report.recipe}"
    return "\n\n".join([*paragraphs, textwrap.fill(f"{asked}{closing}", _WIDTH)])


def _render(finding: Finding) -> str:
    head = f"{finding.severity.value.upper()} {finding.code}"
    if finding.node:
        head += f"  {describe_place(finding)}"
    body = f"{finding.message} (affects the {finding.affects.value})"
    lines = [head, textwrap.fill(body, _WIDTH, initial_indent="  ", subsequent_indent="  ")]
    if finding.remedy:
        lines.append(
            textwrap.fill(
                f"Remedy: {finding.remedy}", _WIDTH, initial_indent="  ", subsequent_indent="  "
            )
        )
    return "\n".join(lines)
