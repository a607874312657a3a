"""``junit.xml``: what CI systems show; its failures are exactly what fails the gate."""

from __future__ import annotations

from datetime import datetime, timezone
from xml.etree import ElementTree as ET

from trtdeploy.parity.result import ParityReport
from trtdeploy.report.document import BuildReport
from trtdeploy.report.junit_cases import JunitCase, list_junit_cases, list_parity_cases
from trtdeploy.report.number_text import shorten
from trtdeploy.report.outcome import SYNTHETIC_WARNING, judge_report

_NAME_CHARACTERS = 200
_TEXT_CHARACTERS = 300


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
    return _render(title, list_junit_cases(report), properties, report.created)


def render_parity_junit(parity: ParityReport) -> str:
    """Return the file of a parity check that stands alone."""
    properties = {
        "label": parity.label,
        "outcome": parity.verdict.value,
        "reference": parity.reference,
        "data": parity.describe_data(),
    }
    cases = list(list_parity_cases(parity))
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
