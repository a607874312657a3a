"""What the build benchmark found, and how it is shown."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

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

_HEADERS = ("", "program", "wall s (fastest-slowest)", "peak MB", "wall ratio", "engine MB")
_NONE = "-"


class Step(NamedTuple):
    """Seconds that trtdeploy says it spent on one step."""

    name: str
    seconds: float


@dataclass(frozen=True)
class BuildComparison:
    """Two programs on one model, trtdeploy first.

    Attributes:
        label: The model.
        runs: Measurements by program.
        steps: Per round, trtdeploy's steps.
        engine_bytes: Size of the engine by program; equal sizes say that both compiled the same.
    """

    label: str
    runs: Mapping[str, tuple[Measurement, ...]]
    steps: tuple[tuple[Step, ...], ...] = ()
    engine_bytes: Mapping[str, int] = field(default_factory=dict)

    def summarize(self, program: str) -> Summary | None:
        """Return the medians of a program; None when one of its runs failed."""
        runs = self.runs[program]
        return None if any(run.failed for run in runs) else summarize(runs)

    @property
    def step_medians(self) -> dict[str, float]:
        """Median seconds by step, and what lies outside all steps as ``rest``."""
        if not self.steps:
            return {}
        names = [step.name for step in self.steps[0]]
        columns = zip(*self.steps, strict=True)
        medians = {
            name: statistics.median(step.seconds for step in column)
            for name, column in zip(names, columns, strict=True)
        }
        runs = next(iter(self.runs.values()))
        inside = [sum(step.seconds for step in steps) for steps in self.steps]
        medians["rest"] = statistics.median(
            run.wall_s - seconds for run, seconds in zip(runs, inside, strict=True)
        )
        return medians

    def to_dict(self) -> dict[str, Any]:
        """Return the figures by name."""
        programs = {}
        for program, runs in self.runs.items():
            summary = self.summarize(program)
            programs[program] = {
                "summary": summary.to_dict() if summary else None,
                "reason": next((run.reason for run in runs if run.failed), ""),
                "wall_s": [run.wall_s for run in runs],
                "engine_bytes": self.engine_bytes.get(program),
            }
        return {"label": self.label, "programs": programs, "steps_s": self.step_medians}


def render_report(
    report: dict[str, Any], start: BuildComparison, builds: Sequence[BuildComparison]
) -> str:
    """Return the whole report as Markdown."""
    versions = format_versions(report["versions"])
    facts = {
        **report["machine"],
        "profile": report["profile"],
        "runs": f"{report['runs']} of each build, in turn, medians; one more before is not counted",
        "versions": versions,
    }
    rows = [row for comparison in (*builds, start) for row in make_rows(comparison)]
    parts = [
        f"`{report['command']}`",
        render_facts(facts),
        render_table(_HEADERS, rows),
        "\n".join(_describe_failures(builds)),
        _render_steps(builds),
    ]
    return "\n\n".join(part for part in parts if part)


def make_rows(comparison: BuildComparison) -> list[tuple[str, ...]]:
    """Return one row per program; the ratio is trtdeploy's wall time divided by the other's."""
    ours = comparison.summarize(next(iter(comparison.runs)))
    rows: list[tuple[str, ...]] = []
    for number, program in enumerate(comparison.runs):
        summary = comparison.summarize(program)
        size = comparison.engine_bytes.get(program)
        rows.append(
            (
                comparison.label if number == 0 else "",
                program,
                format_wall(summary) if summary else "failed",
                format_peak(summary) if summary else _NONE,
                format_ratio(divide(ours, summary).wall) if number and ours and summary else _NONE,
                f"{size / 1e6:.1f}" if size else _NONE,
            )
        )
    return rows


def _describe_failures(builds: Sequence[BuildComparison]) -> list[str]:
    return [
        f"* {build.label}, {program}: {run.reason[:200]}"
        for build in builds
        for program, runs in build.runs.items()
        for run in runs[:1]
        if run.failed
    ]


def _render_steps(builds: Sequence[BuildComparison]) -> str:
    """Return where trtdeploy's time goes; ``rest`` is start-up, imports, check of the folder."""
    medians = [(build.label, build.step_medians) for build in builds if build.steps]
    if not medians:
        return ""
    names = list(medians[0][1])
    rows = [(label, *(f"{found[name]:.3f}" for name in names)) for label, found in medians]
    return render_table(("trtdeploy build, s", *names), rows)
