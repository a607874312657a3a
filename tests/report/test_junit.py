"""JUnit: what counts as failed, and what a failure says."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.report import fabricated
from tests.report.fabricated import check_report
from tests.report.test_html import HOSTILE, poison
from trtdeploy.parity.result import TaskMetric, Verdict
from trtdeploy.report.json_document import dump_document
from trtdeploy.report.junit import render_junit
from trtdeploy.report.outcome import judge_report


def render(parity: Any = None, **sections: Any) -> ET.Element:
    return ET.fromstring(render_junit(check_report(fabricated.make_report(parity, **sections))))


def count(root: ET.Element) -> dict[str, int]:
    """Return the counts of the file after checking them against its elements."""
    found = {}
    for key, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error"),
                     ("skipped", "skipped")):  # fmt: skip
        found[key] = sum(int(suite.attrib[key]) for suite in root)
        assert found[key] == len(list(root.iter(tag)))
        assert key == "skipped" or found[key] == int(root.attrib[key])
    return found


def test_one_case_per_point_and_output_and_one_for_the_compiler() -> None:
    root = render(fabricated.make_mixed_parity())
    assert count(root) == {"tests": 21, "failures": 1, "errors": 0, "skipped": 0}
    names = [case.attrib["name"] for case in root.iter("testcase")]
    assert len(set(names)) == len(names)
    assert "default max: embeddings/pooled" in names


def test_a_failure_says_metric_value_tolerance_and_origin() -> None:
    (failure,) = render(fabricated.make_mixed_parity()).iter("failure")
    assert failure.attrib["message"].startswith("fail: relative L2 error 0.0312 is above")
    text = failure.text or ""
    for wanted in ("relative L2 error 0.0312", "tolerance 5.0e-3", "recipe fp16", "noise floor",
                   "2 in the candidate", "images 8x3x1280x1280", "emulated on CPU"):  # fmt: skip
        assert wanted in text, wanted


def test_a_suspect_is_told_but_does_not_fail() -> None:
    (remark,) = render(fabricated.make_mixed_parity()).iter("system-out")
    assert "suspect" in (remark.text or "")


def test_every_suite_carries_the_label_and_a_timestamp() -> None:
    for suite in render(fabricated.make_mixed_parity()):
        (label,) = suite.findall("properties/property[@name='label']")
        assert label.attrib["value"] == "emulated on CPU"
        assert suite.attrib["timestamp"] == "2026-11-29T18:22:07"
        assert next(iter(suite)).tag == "properties"


def test_blockers_fail_one_by_one() -> None:
    check = fabricated.make_check(
        fabricated.make_finding("blocker"), fabricated.make_finding("blocker", node="other"),
        fabricated.make_finding(),
    )  # fmt: skip
    root = render({"skipped": "blocked"}, check=check)
    assert count(root) == {"tests": 4, "failures": 2, "errors": 0, "skipped": 1}


@pytest.mark.parametrize(
    ("status", "kind"), [("failed", "errors"), ("skipped", "skipped"), ("ok", "tests")]
)
def test_compilation_is_a_case(status: str, kind: str) -> None:
    steps = fabricated.make_steps(compile=status)
    assert count(render(fabricated.make_passing_parity(), steps=steps))[kind] >= 1


def test_a_folder_compiled_later_counts_its_last_compilation() -> None:
    steps = [*fabricated.make_steps(compile="skipped"), *fabricated.make_steps()]
    assert count(render(fabricated.make_passing_parity(), steps=steps))["skipped"] == 0


def task(verdict: Verdict) -> Any:
    point = fabricated.make_point("min", fabricated.make_output("y", 1e-3))
    metric = TaskMetric("miou", 0.8, 0.7, 0.01, verdict)
    return fabricated.make_parity(point, task_metric=metric)


EMPTY_POINT = fabricated.make_point("min")
LOST_POINT = fabricated.make_point("max", problem="cannot be run: out of memory")


@pytest.mark.parametrize(
    "parity",
    [
        {"skipped": "no"},
        fabricated.make_parity(),
        fabricated.make_parity(EMPTY_POINT),
        fabricated.make_parity(*fabricated.make_passing_parity().points, LOST_POINT),
        fabricated.make_mixed_parity(),
        fabricated.make_passing_parity(),
        dump_document(fabricated.make_passing_parity()) | {"verdict": "fail"},
        task(Verdict.FAIL),
        task(Verdict.PASS),
    ],
)
@pytest.mark.parametrize("step", ["ok", "failed"])
def test_the_file_is_red_exactly_when_the_gate_fails(parity: Any, step: str) -> None:
    sections = {"steps": fabricated.make_steps(type=step)}
    counts = count(render(parity, **sections))
    report = check_report(fabricated.make_report(parity, **sections))
    assert bool(counts["failures"] + counts["errors"]) == judge_report(report).gate_failed


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda text: ascii(text[:12]))
def test_no_text_of_a_report_becomes_markup(hostile: str) -> None:
    quantization = fabricated.make_quantization()
    plain = fabricated.make_report(fabricated.make_mixed_parity(), quantization=quantization)
    root = ET.fromstring(render_junit(check_report(poison(plain, hostile))))
    assert count(root)["failures"] == 1
    tags = {element.tag for element in root.iter()}
    assert tags <= {"testsuites", "testsuite", "properties", "property", "testcase", "failure",
                    "system-out", "skipped"}  # fmt: skip
