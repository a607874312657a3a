"""``junit.xml``: what CI systems show; its failures are exactly what fails the gate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from xml.etree import ElementTree as ET

from trtdeploy.parity.result import (
    OutputComparison,
    ParityReport,
    PointResult,
    SkippedParity,
    TaskMetric,
    Verdict,
)
from trtdeploy.report.document import BuildReport
from trtdeploy.report.number_text import (
    format_cosine,
    format_figure,
    format_share,
    format_sizes,
    shorten,
)
from trtdeploy.report.outcome import SYNTHETIC_WARNING, judge_report
from trtdeploy.report.page.error_bars import describe_error

_NAME_CHARACTERS = 200
_TEXT_CHARACTERS = 300
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


def render_junit(report: BuildReport) -> str:
    """Return the file: parity by point and output, blockers of the check, and compilation."""
    judgement = judge_report(report)
    properties = {
        "label": judgement.label,
        "outcome": judgement.outcome.value,
        "profile": report.profile.profile.name,
        "device": report.profile.device.title,
        "source sha256": report.source.sha256,
    }
    if report.quantization is not None and report.quantization.is_synthetic:
        properties["calibration"] = SYNTHETIC_WARNING
    title = f"trtdeploy {report.source.file}"
    return _render(title, _list_cases(report), properties, report.created)


def render_parity_junit(parity: ParityReport) -> str:
    """Return the file of a parity check that stands alone."""
    properties = {
        "label": parity.label,
        "outcome": parity.verdict.value,
        "reference": parity.reference,
        "data": parity.describe_data(),
    }
    cases = list(_list_parity_cases(parity))
    title = f"trtdeploy parity {parity.candidate}"
    return _render(title, cases, properties, datetime.now(timezone.utc))


def _render(
    title: str, cases: list[JunitCase], properties: dict[str, str], created: datetime
) -> str:
    suites: dict[str, list[JunitCase]] = {}
    for case in cases:
        suites.setdefault(case.suite, []).append(case)
    counts = _count(cases)
    del counts["skipped"]  # Jenkins' schema (xunit-plugin, junit-10.xsd) has it for suites only
    root = ET.Element("testsuites", {"name": shorten(title, _NAME_CHARACTERS), **counts})
    for name, members in suites.items():
        root.append(_make_suite(name, members, properties, created))
    ET.indent(root)
    text = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _make_suite(
    name: str, cases: list[JunitCase], properties: dict[str, str], created: datetime
) -> ET.Element:
    # Jenkins and Azure want UTC without an offset.
    moment = created.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
    suite = ET.Element("testsuite", {"name": name, **_count(cases), "timestamp": moment})
    listed = ET.SubElement(suite, "properties")
    for key, value in properties.items():
        ET.SubElement(listed, "property", name=key, value=value)
    for case in cases:
        suite.append(_make_case(case))
    return suite


def _make_case(case: JunitCase) -> ET.Element:
    element = ET.Element(
        "testcase",
        classname=f"trtdeploy.{case.suite}",
        name=shorten(case.name, _NAME_CHARACTERS) or "unnamed",
        time=f"{case.seconds:.3f}",
    )
    if case.kind == "system-out":  # JUnit has no warning: said, and not failed
        ET.SubElement(element, case.kind).text = case.text
    elif case.kind:
        outcome = ET.SubElement(element, case.kind, message=shorten(case.message, _TEXT_CHARACTERS))
        if case.kind != "skipped":
            outcome.set("type", case.suite)
        outcome.text = case.text or None
    return element


def _count(cases: list[JunitCase]) -> dict[str, str]:
    kinds = [case.kind for case in cases]
    return {
        "tests": str(len(cases)),
        "failures": str(kinds.count("failure")),
        "errors": str(kinds.count("error")),
        "skipped": str(kinds.count("skipped")),
        "time": f"{sum(case.seconds for case in cases):.3f}",
    }


def _list_cases(report: BuildReport) -> list[JunitCase]:
    """Return all cases of a report; one of them fails exactly when the gate fails."""
    cases = [
        *_list_check_cases(report),
        *_list_compile_cases(report),
        *_list_parity_cases(report.parity),
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


def _list_parity_cases(parity: ParityReport | SkippedParity) -> Iterator[JunitCase]:
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
