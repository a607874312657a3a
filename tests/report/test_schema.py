"""The committed schema, the models and what a build writes say the same."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import trtdeploy
from tests.building.models import save_convnet
from tests.report import fabricated
from tests.report.regenerate_schema import SCHEMA_PATH, build_json_schema
from trtdeploy.core.errors import InputError
from trtdeploy.parity.result import NoiseComparison, NoiseFigure, TaskMetric, Tolerance, Verdict
from trtdeploy.report.console import render_console
from trtdeploy.report.document import BuildReport
from trtdeploy.report.json_document import dump_document, parse_document, render_document
from trtdeploy.report.junit import render_junit
from trtdeploy.report.loading import load_report
from trtdeploy.report.outcome import Outcome, judge_report
from trtdeploy.report.page.html import render_html

MIXED = dump_document(fabricated.make_mixed_parity())
TASK = dump_document(TaskMetric("top1", 0.76, 0.75, 0.005, Verdict.FAIL))
FORMATS = jsonschema.FormatChecker([])


@FORMATS.checks("date-time", raises=ValueError)
def has_offset(text: str) -> bool:
    """Stand in for rfc3339-validator, which jsonschema would want for this one format."""
    return datetime.fromisoformat(text).tzinfo is not None


def closed_schema() -> dict[str, Any]:
    """Return the schema that also refuses keys it does not name."""
    schema = copy.deepcopy(build_json_schema())
    for part in (*schema["$defs"].values(), schema):
        if part["type"] == "object":
            part["additionalProperties"] = False
    return schema


def find_problems(report: Any, schema: dict[str, Any]) -> list[str]:
    validator = jsonschema.Draft202012Validator(schema, format_checker=FORMATS)
    return [f"{error.json_path}: {error.message[:200]}" for error in validator.iter_errors(report)]


def through_json(report: Any) -> Any:
    return json.loads(json.dumps(report))


def test_committed_schema_is_that_of_the_models() -> None:
    # Releases of pydantic differ in how they write a zero, in saying a constant twice, and in
    # whether they take the docstring of a dataclass along.
    committed, built = json.loads(SCHEMA_PATH.read_text(encoding="utf-8")), build_json_schema()
    built["properties"]["schema_version"].pop("enum", None)
    for name, part in built["$defs"].items():
        if "description" in committed["$defs"].get(name, {}):
            part.setdefault("description", committed["$defs"][name]["description"])
    assert committed == built, "run python -m tests.report.regenerate_schema"


def test_schema_is_valid_draft_2020_12() -> None:
    schema = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["properties"]["schema_version"]["const"] == 2


@pytest.mark.parametrize(
    "parity",
    [
        None,
        {"skipped": "--no-parity"},
        fabricated.make_parity(),
        fabricated.make_mixed_parity(),
        fabricated.make_passing_parity(),
    ],
)
def test_fabricated_reports_are_valid(parity: Any) -> None:
    quantization = fabricated.make_quantization() if parity is not None else None
    report = through_json(fabricated.make_report(parity, quantization=quantization))
    assert find_problems(report, closed_schema()) == []


def test_what_verdicts_follow_from_is_written_with_them() -> None:
    written = dump_document(fabricated.make_mixed_parity())
    assert written["verdict"] == "fail"
    assert [point["verdict"] for point in written["points"]] == ["pass", "pass", "fail"] + [
        "pass"
    ] * 2
    assert [o["verdict"] for o in written["points"][2]["outputs"]] == [
        "pass", "suspect", "pass", "fail",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("profile", "module"),
    [
        ("rtx4090-fp16", "tensorrt_rtx"),
        ("orin-fp16", "onnx"),
        ("cpu-fp32", "onnxruntime"),
    ],
)
def test_real_builds_are_valid(
    profile: str, module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(module)
    monkeypatch.chdir(tmp_path)
    folder = trtdeploy.build(save_convnet(tmp_path / "convnet.onnx"), profile).folder
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert find_problems(report, closed_schema()) == []
    assert judge_report(load_report(folder)).outcome is not Outcome.FAIL


@pytest.mark.parametrize(
    "change",
    [
        {"status": "maybe"},
        {"created": "yesterday"},
        {"created": "2026-11-29T18:22:07"},
        {"engine": {"file": "model.engine"}},
        {"steps": [{"name": "load", "status": "odd", "seconds": 1.0, "detail": "", "log": []}]},
        {"precision": fabricated.make_precision() | {"counts": {"float16": -1}}},
        {"source": None},
        {"shape_notes": "text"},
        {"quantization": {}},
        {"quantization": fabricated.make_quantization(kind=None)},
        {"quantization": fabricated.make_quantization(calibration={"method": "entropy"})},
        {"parity": {}},
        {"parity": {"skipped": None}},
        {"parity": MIXED | {"task_metric": TASK | {"verdict": "fine"}}},
        {"parity": MIXED | {"is_synthetic": 1}},
    ],
)
def test_schema_and_reader_refuse_the_same(change: dict[str, Any]) -> None:
    report = through_json(fabricated.make_report({"skipped": "no"}) | change)
    assert find_problems(report, build_json_schema())
    with pytest.raises(InputError, match="damaged"):
        parse_document(BuildReport, json.dumps(report).encode(), "report.json")


@pytest.mark.parametrize("figure", [math.inf, -math.inf, math.nan])
def test_what_is_written_can_be_read(figure: float) -> None:
    noise = NoiseComparison("fp16", figure, (NoiseFigure("bias", figure, figure),))
    tolerance = Tolerance(figure, figure, None, True, "recipe fp16")
    output = replace(fabricated.make_output("scores", 0.5), noise=noise, tolerance=tolerance)
    metric = TaskMetric("top1", figure, figure, figure, Verdict.FAIL)
    parity = fabricated.make_parity(fabricated.make_point("opt", output), task_metric=metric)
    built = fabricated.check_report(fabricated.make_report(parity))
    written = render_document(BuildReport, built)
    assert find_problems(json.loads(written), build_json_schema()) == []
    report = parse_document(BuildReport, written.encode(), "report.json")
    for render in (render_console, render_html, render_junit):
        assert render(report)
    assert render_document(BuildReport, report) == written
