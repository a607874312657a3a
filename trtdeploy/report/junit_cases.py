"""What ``junit.xml`` lists: one case per comparison, blocker and compilation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trtdeploy.parity.result import (
    OutputComparison,
    ParityReport,
    PointResult,
    SkippedParity,
    TaskMetric,
    Verdict,
)
from trtdeploy.report.document import BuildReport
from trtdeploy.report.number_text import format_cosine, format_figure, format_share, format_sizes
from trtdeploy.report.outcome import judge_report
from trtdeploy.report.page.error_bars import describe_error

_FAILED = ("failure", "error")


@dataclass(frozen=True)
class JunitCase:
    """One test case; ``kind`` is the element that says how it went, empty for a plain pass."""

    suite: str
    name: str
    kind: str = ""
    message: str = ""
    text: str = ""
    seconds: float = 0.0


def list_junit_cases(report: BuildReport) -> list[JunitCase]:
    """Return all cases of a report; one of them fails exactly when the gate fails."""
    cases = [
        *_list_check_cases(report),
        *_list_compile_cases(report),
        *list_parity_cases(report.parity),
    ]
    judgement = judge_report(report)
    if judgement.gate_failed and not any(case.kind in _FAILED for case in cases):
        cases.append(JunitCase("gate", "gate", "failure", judgement.headline))
    return cases


def _list_check_cases(report: BuildReport) -> Iterator[JunitCase]:
    for finding in report.check.blockers:
        place = f" {finding.node}" if finding.node else ""
        text = f"{finding.message}\naffects: {finding.affects.value}\nremedy: {finding.remedy}"
        yield JunitCase("check", f"{finding.code}{place}", "failure", finding.message, text)


def _list_compile_cases(report: BuildReport) -> Iterator[JunitCase]:
    engine = report.check.engine
    kinds = {"ok": "", "skipped": "skipped", "failed": "error"}
    steps = [step for step in report.steps if step.name == "compile"]
    if not steps:
        yield JunitCase("compile", engine, "skipped", "the report has no compile step")
    # A folder that was prepared first and compiled later has both steps; the last one counts.
    for step in steps[-1:]:
        yield JunitCase("compile", engine, kinds[step.status], step.detail, seconds=step.seconds)


def list_parity_cases(parity: ParityReport | SkippedParity) -> Iterator[JunitCase]:
    """Yield one case per comparison, or a skipped one where parity was not checked."""
    if not isinstance(parity, ParityReport):
        yield JunitCase("parity", "parity", "skipped", parity.skipped)
        return
    for point in parity.points:
        if point.problem:
            name = f"{point.optimization_profile} {point.point}"
            text = f"{point.problem}\n{parity.label}"
            yield JunitCase("parity", name, "failure", point.problem, text)
        for output in point.outputs:
            yield _judge_output(parity, point, output)
    if parity.task_metric is not None:
        yield _judge_task(parity, parity.task_metric)


def _judge_output(parity: ParityReport, point: PointResult, output: OutputComparison) -> JunitCase:
    seconds = (point.reference_s + point.candidate_s) / len(point.outputs)
    name = f"{point.optimization_profile} {point.point}: {output.name}"
    if output.verdict is Verdict.PASS:
        return JunitCase("parity", name, seconds=seconds)
    reason = output.reasons[0] if output.reasons else describe_error(output)
    message = f"{output.verdict.value}: {reason}"
    kind = "failure" if output.verdict is Verdict.FAIL else "system-out"
    text = _describe_output(parity, point, output)
    return JunitCase("parity", name, kind, message, text, seconds)


def _describe_output(parity: ParityReport, point: PointResult, output: OutputComparison) -> str:
    metrics, tolerance = output.metrics, output.tolerance
    unit = f" x {format_figure(metrics.reference_amax)} (largest magnitude)"
    lines = [
        f"{output.name} at {point.optimization_profile} {point.point}: {output.verdict.value}",
        *output.reasons,
        describe_error(output),
        f"max abs error {format_figure(metrics.max_abs_error)}, tolerance "
        f"{format_figure(tolerance.atol)}{unit if tolerance.scaled else ''} + "
        f"{format_figure(tolerance.rtol)} x |reference| ({tolerance.origin})",
        f"within it {format_share(metrics.allclose_fraction)}, required "
        f"{format_share(tolerance.close_fraction)} of the elements",
        f"balanced relative L2 error {format_figure(metrics.balanced_relative_l2)}, "
        f"cosine {format_cosine(metrics.cosine)}, SQNR {format_figure(metrics.sqnr_db)} dB",
        f"NaN or infinite: {metrics.nonfinite_reference} in the reference, "
        f"{metrics.nonfinite_candidate} in the candidate",
        *_describe_noise(output),
        "shapes: " + ", ".join(f"{name} {format_sizes(s)}" for name, s in point.shapes.items()),
        f"{parity.label}; inputs: {parity.describe_data()}",
    ]
    return "\n".join(lines)


def _describe_noise(output: OutputComparison) -> Iterator[str]:
    if output.noise is None:
        return
    yield f"rounding: {output.noise.source}"
    for figure in output.noise.figures:
        where = f" at {figure.where}" if figure.where else ""
        value, limit = format_figure(figure.value), format_figure(figure.limit)
        yield f"{figure.name}{where}: {value} times what rounding does, limit {limit}"


def _judge_task(parity: ParityReport, metric: TaskMetric) -> JunitCase:
    drop = metric.reference - metric.candidate
    text = (
        f"reference {format_figure(metric.reference)}, candidate {format_figure(metric.candidate)},"
        f" drop {format_figure(drop)}, allowed {format_figure(metric.max_drop)} ({parity.label})"
    )
    kind = "failure" if metric.verdict is Verdict.FAIL else ""
    return JunitCase("parity", f"task metric {metric.name}", kind, text, text)
