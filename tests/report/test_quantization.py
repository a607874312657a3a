"""The quantization section: what is said, in which order, and that real results fit its schema."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.building.models import save_convnet
from tests.report import fabricated
from tests.report.fabricated import check_report
from tests.report.test_html import Page, render
from tests.report.test_schema import closed_schema, find_problems, through_json
from trtdeploy.calibration.summary import TensorRange
from trtdeploy.config.recipe import RECIPES
from trtdeploy.graph.index import build_index
from trtdeploy.graph.loading import load_model
from trtdeploy.precision.audit.auditing import audit_quantization
from trtdeploy.precision.quantization.planning import plan_quantization
from trtdeploy.precision.quantization.preparation import prepare_for_quantization
from trtdeploy.precision.typed_model import apply_recipe
from trtdeploy.precision.typing_options import TypingOptions
from trtdeploy.report.console import render_console
from trtdeploy.report.document import BuildReport
from trtdeploy.report.json_document import dump_document
from trtdeploy.report.junit import render_junit
from trtdeploy.report.outcome import Outcome, judge_report
from trtdeploy.report.page.clipping import MOST_COLUMNS, draw_clipping
from trtdeploy.report.page.quantization_text import describe_layers
from trtdeploy.report.page.quantization_view import (
    MOST_LAYERS,
    QuantizationView,
    build_quantization_view,
)

SYNTHETIC = "Calibrated with made-up inputs: do not ship"
SLOW = "This will probably not be faster than FP16, because only 12 % of FLOPs run in 8 bits."


def make_checked(quantization: Any = None, parity: Any = None) -> BuildReport:
    parity = parity or fabricated.make_passing_parity()
    return check_report(
        fabricated.make_report(parity, quantization=quantization or fabricated.make_quantization())
    )


def make_view(**sections: Any) -> QuantizationView:
    section = make_checked(fabricated.make_quantization(**sections)).quantization
    assert section is not None
    return build_quantization_view(section)


def render_page(quantization: Any) -> Page:
    return render(fabricated.make_passing_parity(), quantization=quantization)[1]


def make_tensors(*figures: tuple[float | None, float | None]) -> dict[str, TensorRange]:
    return {
        f"t{index}": TensorRange(amax=t, largest=a, method="entropy", one_sided=False)
        for index, (t, a) in enumerate(figures)
    }


@pytest.mark.parametrize("recipe", ["int8", "fp8"])
def test_real_plans_and_audits_fit_the_schema(recipe: str, tmp_path: Path) -> None:
    model = load_model(save_convnet(tmp_path / "convnet.onnx"))
    prepared = prepare_for_quantization(model, RECIPES[recipe])
    plan = plan_quantization(build_index(prepared), RECIPES[recipe])
    typed = apply_recipe(
        model, TypingOptions(RECIPES[recipe], amax=dict.fromkeys(plan.measured, 3.0))
    )
    assert typed.quantization is not None
    audit = audit_quantization(typed.model, {"images": (2, 3, 64, 64)})
    quantization = fabricated.make_quantization(
        decisions={n: dump_document(d) for n, d in typed.quantization.layers.items()},
        audit=dump_document(audit),
    )
    report = through_json(fabricated.make_report({"skipped": "no"}, quantization=quantization))
    assert find_problems(report, closed_schema()) == []
    checked = make_checked(quantization).quantization
    assert checked is not None
    assert checked.audit.flops_share == audit.flops_share
    assert f"of {len(audit.layers)} layers" in describe_layers(checked)


@pytest.mark.parametrize("sections", [{}, {"quantization": None}])
def test_reports_without_the_section_are_as_before(sections: dict[str, Any]) -> None:
    text, page = render(fabricated.make_passing_parity(), **sections)
    assert "quantization" not in page.ids
    assert "#quantization" not in page.links
    assert "Quantization" not in text
    report = check_report(fabricated.make_report(fabricated.make_passing_parity(), **sections))
    assert "quantized" not in render_console(report)


@pytest.mark.parametrize(
    ("parity", "outcome"),
    [
        (fabricated.make_passing_parity(), Outcome.SUSPECT),
        (fabricated.make_mixed_parity(), Outcome.FAIL),
        ({"skipped": "--no-parity was given"}, Outcome.NOT_PROVEN),
    ],
)
def test_made_up_samples_are_said_everywhere(parity: Any, outcome: Outcome) -> None:
    calibration = fabricated.make_calibration(data=[fabricated.make_data(is_synthetic=True)])
    report = make_checked(fabricated.make_quantization(calibration=calibration), parity)
    judgement = judge_report(report)
    assert judgement.outcome is outcome
    assert judgement.headline.endswith(f". {SYNTHETIC}.")
    assert f'name="calibration" value="{SYNTHETIC}."' in render_junit(report)
    assert "31 samples that were made up: do not ship" in " ".join(render_console(report).split())
    _, page = render(parity, quantization=dump_document(report.quantization))
    assert page.text.count(SYNTHETIC) == 2


def test_what_data_says_is_believed_over_a_summary_of_it() -> None:
    data = [fabricated.make_data(samples=3), fabricated.make_data(samples=4, is_synthetic=True)]
    calibration = fabricated.make_calibration(data=data, is_synthetic=False, samples=99)
    report = make_checked(fabricated.make_quantization(calibration=calibration))
    assert report.quantization is not None
    assert report.quantization.is_synthetic
    assert dump_document(report.quantization)["calibration"]["samples"] == 7
    assert report.quantization.amax == {
        name: each["amax"] for name, each in calibration["tensors"].items()
    }


def test_amounts_that_are_none_are_in_no_share() -> None:
    audit = fabricated.make_audit(["a", "b", "c", "d"])
    for layer, flops in zip(audit["layers"], [-5, float("inf"), float("nan"), 10**40], strict=True):
        layer["flops"] = flops
    view = make_view(audit=audit)
    assert [part.share for part in view.bars[0].segments] == [1.0]
    assert sorted(row.share or 0 for row in view.layers.shown) == [0, 0, 0, 1]


def test_real_samples_change_no_outcome() -> None:
    report = make_checked()
    assert judge_report(report).outcome is Outcome.PASS
    assert "do not ship" not in render_junit(report) + render_console(report)


@pytest.mark.parametrize(
    ("answer", "mark", "verdict"),
    [(True, "pass", "Most of the work runs in INT8."), (False, "suspect", SLOW),
     (None, "unproven", "No layer is quantized.")],
)  # fmt: skip
def test_the_verdict_comes_first_with_its_mark(answer: Any, mark: str, verdict: str) -> None:
    audit = fabricated.make_audit(["a"], verdict=verdict, is_probably_faster=answer)
    text, page = render(
        fabricated.make_passing_parity(), quantization=fabricated.make_quantization(audit=audit)
    )
    section = text[text.index('<section id="quantization"') :]
    assert section.index(f'<div class="answer {mark}">') < section.index(verdict)
    assert section.index(verdict) < section.index('class="shares"')
    assert ("Probably faster than FP16" in page.text) == (answer is True)


@pytest.mark.parametrize(
    ("counts", "title"),
    [({"fp16": 2}, "Quantization"), ({"fp16": 2, "int8": 1}, "Quantization to INT8"),
     ({"fp8": 2, "fp16": 4, "int8": 1}, "Quantization to FP8 and INT8")],
)  # fmt: skip
def test_the_heading_names_what_layers_run_in(counts: dict[str, int], title: str) -> None:
    audit = fabricated.make_audit(["a"], layers_by_type=counts)
    quantization = fabricated.make_quantization(kind="none", audit=audit)
    text, _ = render(fabricated.make_passing_parity(), quantization=quantization)
    assert f'<h2 id="quantization-title">{title}</h2>' in text


def test_layers_in_the_way_come_first_then_those_with_most_work() -> None:
    rows = make_view().layers.shown
    assert [row.node for row in rows[:3]] == [
        "/model.0/conv/Conv", "/model.11/conv/Conv", "/model.10/conv/Conv",
    ]  # fmt: skip
    assert rows[0].obstacles == ("a zero point is not 0",)
    assert rows[1].reason == "a last layer: no other follows"
    assert rows[1].share == pytest.approx(12 / 78)
    assert rows[2].reason == ""
    assert sum(row.share or 0 for row in rows) == pytest.approx(1)


def test_bars_divide_work_among_types() -> None:
    view = make_view()
    work, weights = view.bars
    assert [part.runs_in for part in work.segments] == ["int8", "fp16"]
    assert work.segments[0].share == pytest.approx(65 / 78)
    assert sum(part.share for part in weights.segments) == pytest.approx(1)
    assert [(part.kind, part.count) for part in view.legend] == [("i8", 10), ("f16", 2)]


def test_unknown_sizes_have_no_bar() -> None:
    audit = fabricated.make_audit(["a", "b"], flops_share=None, weight_bytes_share=None)
    for layer in audit["layers"]:
        layer |= {"flops": None, "weight_bytes": None}
    view = make_view(audit=audit | {"unknown_costs": 2})
    assert view.bars == ()
    assert [row.share for row in view.layers.shown] == [None, None]
    page = render_page(fabricated.make_quantization(audit=audit | {"unknown_costs": 2}))
    assert "Sizes of 2 layers are not known" in page.text


def test_obstacles_are_one_group_per_kind_with_remedy_and_places() -> None:
    kinds = [("round-trip", "q1"), ("zero-point", "a"), ("round-trip", "q2"), ("new-kind", "b"),
             ("round-trip", "q1")]  # fmt: skip
    obstacles = [
        {"kind": kind, "node": node, "detail": f"{node} rounds", "remedy": f"mend {kind}"}
        for kind, node in kinds
    ]
    audit = fabricated.make_audit(["a", "b"], obstacles=obstacles)
    first, *others = make_view(audit=audit).obstacles.shown
    assert (first.remedy, first.nodes) == ("mend round-trip", ("q1", "q2"))
    assert first.title == "the value is quantized and read by nothing that gains from it"
    assert "new-kind" in {group.title for group in others}
    page = render_page(fabricated.make_quantization(audit=audit))
    assert "q2 : q2 rounds" in page.text
    assert "mend zero-point" in page.text


def test_layers_left_alone_are_grouped_by_rule_and_reason() -> None:
    decisions = {
        f"n{index}": fabricated.make_decision(None, "KeepPooledLayerRule", f"reason {index // 3}")
        for index in range(4)
    } | {"x": fabricated.make_decision("int8"), "y": fabricated.make_decision(None, "R", "why")}
    groups = make_view(decisions=decisions).left_alone
    assert [(group.rule, group.count) for group in groups] == [("KeepPooledLayerRule", 4), ("R", 1)]
    assert groups[0].reasons[0].nodes == ("n0", "n1", "n2")


def test_calibration_facts_are_all_there() -> None:
    page = render_page(fabricated.make_quantization())
    for wanted in (
        "entropy, minmax for '/model.1/*'", "31 , 1 skipped", "calib.npz (32 samples)",
        fabricated.make_hash("calib"), "sample 12, input 'images': 1 NaN",
        "12 of 12 tensors are clipped, 1 of them below half", "6 are never negative",
        "is always zero", "is fused",
    ):  # fmt: skip
        assert wanted in page.text or wanted.replace(" ,", ",") in page.text, wanted
    assert "percentile" not in page.text


def test_a_prequantized_model_has_no_calibration() -> None:
    quantization = fabricated.make_quantization(calibration=None)
    assert "the model is pre-quantized" in render_page(quantization).text
    lines = render_console(make_checked(quantization))
    assert "calibrated      by who made the model" in lines
    audit = fabricated.make_audit(["a"], is_probably_faster=None)
    untouched = fabricated.make_quantization(calibration=None, audit=audit)
    assert "pre-quantized" not in render_page(untouched).text


@pytest.mark.parametrize(
    ("amax", "largest", "kept"),
    [(2.0, 4.0, 0.5), (4.0, 4.0, 1.0), (1.0, 0.0, 1.0), (0.0, 4.0, 0.0), (None, 4.0, 1.0),
     (1.0, None, 1.0), (5.0, 4.0, 1.0), (1.0, float("inf"), 1.0), (-1.0, 4.0, 1.0)],
)  # fmt: skip
def test_what_clipping_keeps(amax: float | None, largest: float | None, kept: float) -> None:
    picture = draw_clipping(make_tensors((amax, largest), (1.0, 2.0)))
    found = {tensor.name: tensor.kept for tensor in picture.hardest.shown}
    assert found.get("t0", 1.0) == kept
    assert found["t1"] == 0.5
    assert all(1 <= column.percent <= 100 for column in picture.columns)
    assert picture.columns[0].is_hard == (kept < 0.5)


def test_the_hardest_clipped_tensor_is_never_hidden() -> None:
    figures = [(3.0, 4.0)] * 1000
    figures[777] = (0.01, 4.0)
    picture = draw_clipping(make_tensors(*figures))
    assert len(picture.columns) <= MOST_COLUMNS
    (hard,) = [column for column in picture.columns if column.is_hard]
    assert hard.title == "t777 · clipped at 0.01 of 4 (0.25 %)"
    assert picture.hardest.shown[0].name == "t777"


def test_without_clipping_there_is_no_picture() -> None:
    picture = draw_clipping(make_tensors((4.0, 4.0), (1.0, 0.0)))
    assert (picture.columns, picture.text) == ((), "0 of 2 tensors are clipped")


def test_console_says_layers_verdict_calibration_and_obstacles() -> None:
    report = make_checked()
    lines = render_console(report).splitlines()
    assert "quantized       10 of 12 layers INT8 (83.3 % of FLOPs)" in lines
    assert any(line.startswith("expected speed  Probably faster than FP16. Most") for line in lines)
    assert any(
        line.startswith("calibrated      on calib.npz (32 samples); entropy") for line in lines
    )
    (obstacle,) = [line for line in lines if line.startswith("OBSTACLE")]
    assert obstacle.startswith("OBSTACLE a zero point is not 0: '/model.0/conv/Conv'. Calibrate")


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ({"int8": 3}, "3 of 3 layers INT8 (83.3 % of FLOPs)"),
        ({"fp16": 1, "int8": 4, "fp8": 2}, "4 of 7 layers INT8, 2 FP8 (83.3 % of FLOPs)"),
        ({"fp16": 1}, "none of 1 layer"),
        ({}, "there is no layer"),
    ],
)
def test_layers_in_one_line(counts: dict[str, int], text: str) -> None:
    audit = fabricated.make_audit(["a"], layers_by_type=counts)
    section = make_checked(fabricated.make_quantization(audit=audit)).quantization
    assert section is not None
    assert describe_layers(section) == text


def test_many_obstacles_keep_the_console_short() -> None:
    obstacles = [
        {"kind": f"kind{index % 6}", "node": f"n{index}", "detail": "", "remedy": "Mend it."}
        for index in range(500)
    ]
    audit = fabricated.make_audit(["a"], obstacles=obstacles)
    text = render_console(make_checked(fabricated.make_quantization(audit=audit)))
    assert text.count("OBSTACLE") == 4
    assert "'n0' and 83 more nodes. Mend it." in " ".join(text.split())
    assert "... and 2 more obstacle kinds in report.json" in text


def test_a_large_model_stays_small() -> None:
    large = fabricated.make_quantization(5000)
    names = list(large["decisions"])
    large["audit"]["obstacles"] = [
        {"kind": "zero-point", "node": name, "detail": "x" * 500, "remedy": "mend"}
        for name in names
    ]
    text, page = render(fabricated.make_passing_parity(), quantization=large)
    assert len(text) < 200_000
    assert MOST_LAYERS == 24
    assert "and 4 976 layers more in report.json" in page.text
    assert len(re.findall(r'style="height:[\d.]+%"', text)) <= MOST_COLUMNS
