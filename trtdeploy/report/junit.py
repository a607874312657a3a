"""``junit.xml``: what CI systems show; its failures are exactly what fails the gate."""

from __future__ import annotations

from datetime import timezone
from xml.etree import ElementTree as ET

from trtdeploy.report.document import BuildReport
from trtdeploy.report.junit_cases import JunitCase, list_junit_cases
from trtdeploy.report.number_text import shorten
from trtdeploy.report.outcome import judge_report

_NAME_CHARACTERS = 200
_TEXT_CHARACTERS = 300


def render_junit(report: BuildReport) -> str:
    """Return the file: parity by point and output, blockers of the check, and compilation."""
    cases = list_junit_cases(report)
    suites: dict[str, list[JunitCase]] = {}
    for case in cases:
        suites.setdefault(case.suite, []).append(case)
    title = shorten(f"trtdeploy {report.source.file}", _NAME_CHARACTERS)
    counts = _count(cases)
    del counts["skipped"]  # Jenkins' schema (xunit-plugin, junit-10.xsd) has it for suites only
    root = ET.Element("testsuites", {"name": title, **counts})
    for name, members in suites.items():
        root.append(_make_suite(report, name, members))
    ET.indent(root)
    text = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _make_suite(report: BuildReport, name: str, cases: list[JunitCase]) -> ET.Element:
    # Jenkins and Azure want UTC without an offset.
    created = report.created.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
    suite = ET.Element("testsuite", {"name": name, **_count(cases), "timestamp": created})
    properties = ET.SubElement(suite, "properties")
    judgement = judge_report(report)
    for key, value in (
        ("label", judgement.label),
        ("outcome", judgement.outcome.value),
        ("profile", report.profile.profile.name),
        ("device", report.profile.device.title),
        ("source sha256", report.source.sha256),
    ):
        ET.SubElement(properties, "property", name=key, value=value)
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
