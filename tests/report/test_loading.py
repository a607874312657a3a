"""Reading a report: one clear error for everything that is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.report import fabricated
from tests.report.fabricated import check_report
from trtdeploy.core.errors import InputError
from trtdeploy.parity.result import ParityReport
from trtdeploy.report.console import render_console
from trtdeploy.report.document import BuildReport
from trtdeploy.report.json_document import clean_value, parse_document
from trtdeploy.report.junit import render_junit
from trtdeploy.report.loading import load_report
from trtdeploy.report.outcome import Outcome, judge_report
from trtdeploy.report.page.html import render_html
from trtdeploy.report.writing import write_reports


def save(folder: Path, report: Any) -> Path:
    path = folder / "report.json"
    path.write_text(json.dumps(report), encoding="utf-8")
    return path


def test_folder_and_file_are_the_same(tmp_path: Path) -> None:
    path = save(tmp_path, fabricated.make_report(fabricated.make_mixed_parity()))
    assert load_report(tmp_path) == load_report(path)


def test_a_report_without_parity_is_one_without_proof(tmp_path: Path) -> None:
    save(tmp_path, fabricated.make_report())
    assert "no parity section" in render_console(load_report(tmp_path))


@pytest.mark.parametrize("name", ["", "nothing.json", "folder"])
def test_what_is_not_there_is_said(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder" / "report.json").mkdir(parents=True)
    with pytest.raises(InputError, match="not an output folder"):
        load_report(tmp_path / name)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\x00\xff\xfe garbage",
        b"[]",
        b"null",
        b"{",
        b"[" * 100_000,
        b'{"schema_version": 2}',
        b'{"schema_version": "1"}',
        b'{"schema_version": 2' + b"0" * 5000 + b"}",
        b'{"schema_version": 2, "status": "\\ud800"}',
        b'{"schema_version": 2, "status": "\xff"}',
        b'{"schema_version": 2, "steps": ' + b"[" * 5000 + b"]" * 5000 + b"}",
        b'{"\\u001b[31m": 1}',
    ],
)
def test_damage_is_one_error(raw: bytes, tmp_path: Path) -> None:
    (tmp_path / "report.json").write_bytes(raw)
    with pytest.raises(InputError) as caught:
        load_report(tmp_path)
    message = caught.value.message
    assert "report.json is damaged" in message
    assert len(message) < 500
    assert message.isprintable()


def test_another_schema_version_is_not_damage() -> None:
    with pytest.raises(InputError, match="schema version 1; this trtdeploy reads 2") as caught:
        parse_document(BuildReport, b'{"schema_version": 1, "all": "different"}', "report.json")
    assert "trtdeploy build MODEL.onnx --profile NAME --rebuild" in caught.value.hint
    assert "trtdeploy that wrote it" in caught.value.hint


def test_the_message_names_place_and_value() -> None:
    report = fabricated.make_report() | {"shape_notes": [3], "steps": {}}
    with pytest.raises(InputError, match=r"shape_notes\.0: .*given 3 \(and 1 more\)"):
        check_report(report)


def test_keys_of_a_later_version_are_left_alone() -> None:
    report = fabricated.make_report(fabricated.make_mixed_parity()) | {"benchmark": {"ms": 3}}
    report["parity"]["points"][0]["speed"] = "high"
    assert check_report(report).status == "engine"


def test_infinite_figures_are_shown(tmp_path: Path) -> None:
    output = fabricated.make_output("y", float("inf"), sqnr_db=float("-inf"), cosine=float("nan"))
    report = fabricated.make_report(fabricated.make_parity(fabricated.make_point("min", output)))
    write_reports(tmp_path, check_report(report))
    assert "<b>inf</b>" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_verdicts_are_derived_and_never_believed() -> None:
    report = through_file(fabricated.make_mixed_parity())
    for entry in (report["parity"], *report["parity"]["points"]):
        entry["verdict"] = "pass"
    checked = check_report(report)
    assert isinstance(checked.parity, ParityReport)
    assert checked.parity == fabricated.make_mixed_parity()
    assert judge_report(checked).outcome is Outcome.FAIL


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_times_that_are_none_are_refused(seconds: float) -> None:
    report = through_file(fabricated.make_mixed_parity())
    report["parity"]["points"][1]["candidate_s"] = seconds
    with pytest.raises(InputError, match=r"parity\.points\.1: .*are no times"):
        check_report(report)


@pytest.mark.parametrize("seconds", [-1.0, float("inf"), float("nan")])
@pytest.mark.parametrize("place", ["steps.1.seconds", "compile.parse_s", "compile.build_s"])
def test_times_of_steps_and_compilers_are_held_to_the_same(place: str, seconds: float) -> None:
    report = through_file(fabricated.make_mixed_parity())
    section, key = report, place.rpartition(".")[2]
    for part in place.split(".")[:-1]:
        section = section[int(part) if part.isdecimal() else part]
    section[key] = seconds
    with pytest.raises(InputError, match=r"(steps\.1|compile): .*no time"):
        check_report(report)


def test_what_a_check_found_can_be_shown_anywhere() -> None:
    output = fabricated.make_output("\x1b[31my", float("inf"))
    data = "caf\udce9.npz"  # a file name that is no UTF-8
    parity = fabricated.make_parity(fabricated.make_point("min", output), data=data)
    shown = clean_value(ParityReport, parity)
    (found,) = shown.points[0].outputs
    assert (found.name, shown.data) == ("\ufffd[31my", "caf\ufffd.npz")
    assert found.metrics == output.metrics


def through_file(parity: ParityReport) -> Any:
    return json.loads(json.dumps(fabricated.make_report(parity)))


REPORT = json.loads(
    json.dumps(
        fabricated.make_report(
            fabricated.make_mixed_parity(), quantization=fabricated.make_quantization(3)
        )
    )
)
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([-1, 2**63, 10**40, 0.0, -1.5, 1e308, float("inf"), float("nan")]),
    st.text(max_size=8),
    st.lists(st.integers(-5, 5), max_size=3),
    st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=2),
)


def list_places(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    keys = value.items() if isinstance(value, dict) else enumerate(value)
    found = []
    for key, child in keys:
        found.append((*place, key))
        if isinstance(child, dict | list):
            found += list_places(child, (*place, key))
    return found


@settings(max_examples=150)
@given(place=st.sampled_from(list_places(REPORT)), value=VALUES)
def test_any_changed_value_is_refused_or_shown(place: tuple[Any, ...], value: Any) -> None:
    report = json.loads(json.dumps(REPORT))
    owner = report
    for key in place[:-1]:
        owner = owner[key]
    owner[place[-1]] = value
    try:
        checked = check_report(report)
    except InputError:
        return
    for render in (render_html, render_junit, render_console):
        assert render(checked)
