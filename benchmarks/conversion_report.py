"""What the conversion benchmark found, and how it is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.processes import Measurement
from benchmarks.tables import (
    Summary,
    divide,
    format_peak,
    format_ratio,
    format_versions,
    format_wall,
    render_facts,
    render_table,
    summarize,
)

_HEADERS = (
    "model", "tool", "wall s (fastest-slowest)", "peak MB",
    "trtdeploy's wall", "trtdeploy's peak", "loads", "error / amax", "right",
)  # fmt: skip
_NONE = "-"
_AS_NEAR = 1.2
"""Errors whose ratio is below this count as the same rounding noise."""


@dataclass(frozen=True)
class Verdict:
    """Whether a converted model is any good.

    Attributes:
        loads: ONNX Runtime loads and runs it.
        error: Largest error relative to the FP32 output's amax; None when it was not compared.
        right: The error is within 1 %.
        reason: Why not, when it does not load or was not made.
    """

    loads: bool = False
    error: float | None = None
    right: bool = False
    reason: str = ""


@dataclass(frozen=True)
class ToolResult:
    """One tool on one model; ``runs`` is empty when the tool failed."""

    tool: str
    runs: tuple[Measurement, ...]
    verdict: Verdict

    def summarize(self) -> Summary | None:
        """Return the medians; None when the tool failed."""
        failed = not self.runs or any(run.failed for run in self.runs)
        return None if failed else summarize(self.runs)


@dataclass(frozen=True)
class ModelResult:
    """All tools on one model, trtdeploy first."""

    model: str
    tools: tuple[ToolResult, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return figures and verdicts by name."""
        tools = []
        for result in self.tools:
            summary = result.summarize()
            tools.append(
                {
                    "tool": result.tool,
                    "summary": summary.to_dict() if summary else None,
                    "runs": [
                        {"wall_s": r.wall_s, "cpu_s": r.cpu_s, "peak_bytes": r.peak_bytes}
                        for r in result.runs
                    ],
                    "verdict": asdict(result.verdict),
                }
            )
        return {"model": self.model, "tools": tools}


def render_report(
    report: dict[str, Any], results: Sequence[ModelResult], big: ModelResult | None
) -> str:
    """Return the whole report as Markdown."""
    parts = [f"`{report['command']}`", render_facts(_list_facts(report))]
    rows = [row for result in results for row in make_rows(result)]
    parts.append(render_table(_HEADERS, rows))
    parts.append(_describe_wrong(results))
    if big is not None:
        parts.append(_render_big(big))
    return "\n\n".join(part for part in parts if part)


def _list_facts(report: dict[str, Any]) -> dict[str, str]:
    facts = dict(report["machine"])
    facts["runs"] = f"{report['runs']} of each, in turn, medians; one more before is not counted"
    for tool, versions in report["versions"].items():
        facts[tool] = format_versions(versions)
    return facts


def make_rows(result: ModelResult) -> list[tuple[str, ...]]:
    """Return one row per tool; ratios are trtdeploy's figure divided by that tool's."""
    ours = result.tools[0].summarize()
    rows: list[tuple[str, ...]] = []
    for number, tool in enumerate(result.tools):
        summary = tool.summarize()
        ratio = divide(ours, summary) if ours and summary and number else None
        verdict = tool.verdict
        rows.append(
            (
                result.model if number == 0 else "",
                tool.tool,
                format_wall(summary) if summary else "failed",
                format_peak(summary) if summary else _NONE,
                format_ratio(ratio.wall) if ratio else _NONE,
                format_ratio(ratio.peak) if ratio else _NONE,
                "yes" if verdict.loads else "no",
                _NONE if verdict.error is None else f"{verdict.error:.1e}",
                name_verdict(verdict, [t.verdict for t in result.tools if t is not tool]),
            )
        )
    return rows


def name_verdict(verdict: Verdict, others: Sequence[Verdict]) -> str:
    """Return ``yes`` within 1 %, ``as others`` when no other tool comes nearer, else ``no``.

    Random inputs leave some networks undecided, and there FP16 itself costs more than 1 %,
    whoever does it.
    """
    if verdict.right:
        return "yes"
    errors = [other.error for other in others if other.error is not None]
    if verdict.error is None or not errors or verdict.error > _AS_NEAR * min(errors):
        return "no"
    return "as others"


def _describe_wrong(results: Sequence[ModelResult]) -> str:
    """Return one line per output that is not right and has a reason."""
    return "\n".join(
        f"* {result.model}, {tool.tool}: {' '.join(tool.verdict.reason.split())[:200]}"
        for result in results
        for tool in result.tools
        if tool.verdict.reason
    )


def _render_big(result: ModelResult) -> str:
    tool = result.tools[0]
    summary = tool.summarize()
    if summary is None:
        return f"{result.model}: trtdeploy failed, {tool.runs[0].reason}"
    row = (result.model, f"{summary.wall_s:.1f}", format_peak(summary), tool.verdict.reason)
    return render_table(("external data", "wall s", "peak MB", "result"), [row])
