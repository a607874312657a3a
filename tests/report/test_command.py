"""``trtdeploy report`` and what the pipeline calls."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.report import fabricated
from tests.report.fabricated import check_report
from trtdeploy.cli.main import run
from trtdeploy.core.errors import InputError
from trtdeploy.report.writing import write_reports

FAILING, PASSING = fabricated.make_mixed_parity(), fabricated.make_passing_parity()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save(tmp_path, PASSING)
    return tmp_path


def save(folder: Path, parity: Any) -> None:
    text = json.dumps(fabricated.make_report(parity))
    (folder / "report.json").write_text(text, encoding="utf-8")


def list_names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_prints_the_table_and_writes_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["report", str(folder)]) == 0
    assert capsys.readouterr().out.startswith("PASS (measured on NVIDIA GeForce RTX 4090)\n")
    assert list_names(folder) == ["report.json"]


@pytest.mark.parametrize(("parity", "code"), [(PASSING, 0), (FAILING, 1), ({"skipped": "no"}, 0)])
def test_exit_code_is_the_gate(folder: Path, parity: Any, code: int) -> None:
    save(folder, parity)
    assert run(["report", str(folder), "--html", "--junit"]) == code
    assert list_names(folder) == ["junit.xml", "report.html", "report.json"]


def test_files_go_where_they_are_wanted(folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "elsewhere"
    place.mkdir()
    options = ["--html-file", str(place / "page.html"), "--junit-file", str(place / "ci.xml")]
    assert run(["report", str(folder / "report.json"), *options]) == 0
    assert list_names(place) == ["ci.xml", "page.html"]
    assert ET.parse(place / "ci.xml").getroot().tag == "testsuites"


def test_json_is_json_even_for_infinite_errors(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = fabricated.make_output("y", float("inf"))
    save(folder, fabricated.make_parity(fabricated.make_point("min", output)))
    assert run(["report", str(folder), "--html", "--output", "json"]) == 0
    text = capsys.readouterr().out
    payload = json.loads(text, parse_constant=pytest.fail)
    assert payload["html"].endswith("report.html")
    assert payload["junit"] is None
    assert payload["label"] == "emulated on CPU"
    assert payload["parity"]["points"][0]["outputs"][0]["metrics"]["relative_l2"] is None


@pytest.mark.parametrize("place", ["missing/page.html", "."])
def test_a_place_that_cannot_be_written_is_said(
    folder: Path, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["report", str(folder), "--html-file", str(folder / place)]) == 3
    assert "cannot be written" in capsys.readouterr().err
    assert list_names(folder) == ["report.json"]


def test_no_report_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", str(tmp_path)]) == 3
    assert "trtdeploy build" in capsys.readouterr().err


def test_the_pipeline_writes_both_files(tmp_path: Path) -> None:
    write_reports(tmp_path, check_report(fabricated.make_report(FAILING)))
    assert list_names(tmp_path) == ["junit.xml", "report.html"]


def test_the_pipeline_is_told_of_a_report_that_breaks_the_schema(tmp_path: Path) -> None:
    report = check_report(fabricated.make_report(FAILING))
    wrong: Any = "unknown"
    with pytest.raises(InputError, match="BuildReport is damaged: status"):
        write_reports(tmp_path, replace(report, status=wrong))
    assert list_names(tmp_path) == []
