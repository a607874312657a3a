"""The report as ``--output json`` prints it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trtdeploy.report.document import BuildReport
from trtdeploy.report.json_document import drop_infinities, dump_document
from trtdeploy.report.outcome import is_accepted, judge_report


def summarize_report(
    report: BuildReport, path: Path, written: Mapping[str, Path | None], *, strict: bool = False
) -> dict[str, Any]:
    """Return verdict, label, parity and the files that were written as plain values.

    Args:
        report: The report.
        path: Of its ``report.json``.
        written: Files by kind (``html``, ``junit``); None for one that was not asked for.
        strict: A suspicion fails the gate too.
    """
    judgement = judge_report(report)
    return {
        "report": str(path),
        "outcome": judgement.outcome.value,
        "gate_failed": not is_accepted(report, strict=strict),
        "headline": judgement.headline,
        "label": judgement.label,
        "status": report.status,
        "parity": drop_infinities(dump_document(report.parity)),
        **{kind: str(place) if place else None for kind, place in written.items()},
    }
