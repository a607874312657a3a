"""The whole check, on models that are plain functions."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np
import pytest

from trtdeploy.config.batch_layout import BatchLayout
from trtdeploy.config.recipe import RECIPES
from trtdeploy.core.arrays import Feeds, Outputs, Runner
from trtdeploy.core.errors import ExecutionError, InputError
from trtdeploy.core.ranges import OptimizationProfile, ShapeRange, ValueRange
from trtdeploy.parity.checking import ParityProgress, check_parity
from trtdeploy.parity.comparison import ComparisonRules
from trtdeploy.parity.judgement import with_finding
from trtdeploy.parity.noise import expect_emulation
from trtdeploy.parity.point_check import ParityPlan
from trtdeploy.parity.points import find_independence_points, find_points
from trtdeploy.parity.result import ParityReport, Verdict
from trtdeploy.parity.tolerance import make_tolerance_provider
from trtdeploy.report.json_document import dump_document

Shapes = Mapping[str, tuple[int, ...]]
BATCH = BatchLayout({"x": 0}, {"y": 0})
PROFILE = OptimizationProfile("p", {"x": ShapeRange((1, 6), (2, 6), (4, 6))})
SUBJECT = ParityReport("emulated on CPU", "m.onnx", "m.fp16", "synthetic", True, ())


def make_feeds(samples: int = 3) -> Callable[[Shapes, Shapes], Iterator[Feeds]]:
    def make(shapes: Shapes, values: Shapes) -> Iterator[Feeds]:
        rng = np.random.default_rng(0)
        for _ in range(samples):
            feeds = {name: rng.standard_normal(s).astype(np.float32) for name, s in shapes.items()}
            yield feeds | {name: np.array(v) for name, v in values.items()}

    return make


def make_plan(recipe: str = "fp16", **changes: object) -> ParityPlan:
    given: dict[str, object] = {
        "points": find_points([PROFILE], BATCH),
        "tolerance": make_tolerance_provider(RECIPES[recipe]),
        "batch": BATCH,
    }
    return ParityPlan(**(given | changes))  # type: ignore[arg-type]


def run_double(feeds: Feeds) -> Outputs:
    return {"y": feeds["x"] * 2}


def run_half_precision(feeds: Feeds) -> Outputs:
    return {"y": (feeds["x"].astype(np.float16) * np.float16(2)).astype(np.float32)}


def check(reference: Runner, candidate: Runner, **changes: object) -> ParityReport:
    plan = make_plan(**changes)
    return check_parity(reference, candidate, plan=plan, make_feeds=make_feeds(), subject=SUBJECT)


def get_reasons(report: ParityReport) -> str:
    return " | ".join(r for p in report.points for o in p.outputs for r in (p.problem, *o.reasons))


def test_an_honest_candidate_passes_everywhere() -> None:
    report = check(run_double, run_half_precision)
    assert report.verdict is Verdict.PASS
    assert [point.point for point in report.points] == ["min", "opt", "max", "batch 3"]
    assert [point.samples for point in report.points] == [3, 6, 12, 9]
    assert report.points[2].shapes == {"x": (4, 6)}
    assert (report.label, report.is_synthetic) == ("emulated on CPU", True)
    assert all(point.reference_s >= 0 for point in report.points)


def test_a_difference_at_one_point_fails_the_report() -> None:
    def wrong_at_four(feeds: Feeds) -> Outputs:
        return {"y": feeds["x"] * (2.5 if len(feeds["x"]) == 4 else 2)}

    report = check(run_double, wrong_at_four)
    assert report.verdict is Verdict.FAIL
    assert {p.point: p.verdict.name for p in report.points} == {
        "min": "PASS", "opt": "PASS", "max": "FAIL", "batch 3": "PASS",
    }  # fmt: skip


def test_the_report_is_plain_data() -> None:
    source = expect_emulation(run_half_precision, RECIPES["fp16"])
    report = check(run_double, run_half_precision, rules=ComparisonRules(source))
    data = json.loads(json.dumps(dump_document(report), allow_nan=False))
    assert json.loads(json.dumps(report.to_dict())) == data
    assert data["verdict"] == "pass"
    assert data["points"][0]["outputs"][0]["noise"]["figures"]


def test_a_suspicion_is_accepted_with_a_warning_unless_strict(
    caplog: pytest.LogCaptureFixture,
) -> None:
    passed = check(run_double, run_half_precision)
    outputs = tuple(with_finding(o, Verdict.SUSPECT, "suspect") for o in passed.points[0].outputs)
    report = replace(passed, points=(replace(passed.points[0], outputs=outputs),))
    assert passed.is_accepted()
    assert not caplog.records
    assert not report.is_accepted(strict=True)
    assert not caplog.records
    assert report.is_accepted()
    assert "worse than rounding explains" in caplog.text
    assert not replace(report, points=()).is_accepted()


def test_a_missing_output_is_a_failure() -> None:
    report = check(run_double, lambda feeds: {"z": feeds["x"]})
    assert "the candidate has no output 'y'; it has z" in get_reasons(report)
    assert report.verdict is Verdict.FAIL


def test_a_point_that_cannot_be_run_does_not_hide_the_others() -> None:
    def refuse_four(feeds: Feeds) -> Outputs:
        if len(feeds["x"]) == 4:
            raise ExecutionError("out of memory")
        return run_double(feeds)

    report = check(run_double, refuse_four)
    assert report.verdict is Verdict.FAIL
    assert [bool(point.problem) for point in report.points] == [False, False, True, False]
    assert report.points[2].problem == "cannot be run: out of memory"


def test_bad_data_is_the_callers_error() -> None:
    def make(shapes: Shapes, values: Shapes) -> Iterator[Feeds]:
        raise InputError("sample 3 is damaged")
        yield {}

    with pytest.raises(InputError, match="sample 3"):
        check_parity(run_double, run_double, plan=make_plan(), make_feeds=make, subject=SUBJECT)


def test_no_samples_and_no_points_are_failures() -> None:
    plan = make_plan()
    empty = check_parity(
        run_double, run_double, plan=plan, make_feeds=make_feeds(0), subject=SUBJECT
    )
    assert empty.points[0].problem == "no sample was compared"
    assert check(run_double, run_double, points=()).verdict is Verdict.FAIL


def test_progress_is_told_before_and_after_every_sample() -> None:
    seen: list[ParityProgress] = []
    check_parity(
        run_double, run_double, plan=make_plan(), make_feeds=make_feeds(2), subject=SUBJECT,
        progress=seen.append,
    )  # fmt: skip
    assert [(p.position, p.samples) for p in seen[:6]] == [
        (1, 0), (1, 1), (1, 2), (2, 0), (2, 2), (2, 4),
    ]  # fmt: skip
    assert {p.total for p in seen} == {4}


def test_shape_tensor_values_reach_the_feeds() -> None:
    sizes = {"x": ShapeRange((1, 6), (1, 6), (1, 6)), "n": ShapeRange((), (), ())}
    entry = OptimizationProfile("p", sizes, {"n": ValueRange((2,), (3,), (4,))})
    seen = []

    def run(feeds: Feeds) -> Outputs:
        seen.append(feeds["n"].tolist())
        return run_double(feeds)

    report = check(run, run_double, points=find_points([entry]))
    assert report.verdict is Verdict.PASS
    assert sorted(set(map(tuple, seen))) == [(2,), (3,), (4,)]


def test_data_of_other_sizes_are_noted() -> None:
    def make(shapes: Shapes, values: Shapes) -> Iterator[Feeds]:
        yield {"x": np.ones((1, 5), np.float32)}

    report = check_parity(
        run_double, run_double, plan=make_plan(), make_feeds=make, subject=SUBJECT
    )
    assert "point max of p asks for x 4x6; the data have 1x5" in " ".join(report.notes)
    assert report.points[0].shapes == {"x": (1, 5)}


def run_mixed(feeds: Feeds) -> Outputs:
    """Case o19 ``_mixed``: sample 0 changes when sample 1 is added."""
    return {"y": feeds["x"].mean(axis=0, keepdims=True)}


def test_samples_that_mix_are_found_in_both_models() -> None:
    points = find_independence_points([PROFILE], BATCH)
    report = check(run_mixed, run_mixed, independence=points)
    mixed = [point for point in report.points if point.verdict is Verdict.FAIL]
    assert [point.point for point in mixed] == [
        "batch independence of the reference",
        "batch independence of the candidate",
    ]
    assert "mixes samples" in mixed[0].outputs[0].reasons[0]


def test_a_mixing_candidate_is_told_from_a_sound_reference() -> None:
    def run_leaking(feeds: Feeds) -> Outputs:
        x = feeds["x"]
        return {"y": x * 2 + (0.5 if len(x) > 1 else 0) * x.mean(axis=0, keepdims=True)}

    points = find_independence_points([PROFILE], BATCH)
    report = check(run_double, run_leaking, points=(), independence=points)
    assert [point.verdict.name for point in report.points] == ["PASS", "FAIL"]


def test_outputs_without_a_batch_and_on_another_axis_are_independent() -> None:
    def run(feeds: Feeds) -> Outputs:
        x = feeds["x"]
        return {"y": x * 2, "t": x.T, "anchors": np.ones((1, 9), np.float32)}

    layout = BatchLayout({"x": 0}, {"y": 0, "t": 1})
    points = find_independence_points([PROFILE], layout)
    report = check(run, run, points=(), independence=points, batch=layout)
    assert report.verdict is Verdict.PASS
    assert len(report.points[0].outputs) == 3


def test_too_few_samples_for_independence_are_noted() -> None:
    def make(shapes: Shapes, values: Shapes) -> Iterator[Feeds]:
        yield {"x": np.ones((1, 6), np.float32)}

    plan = make_plan(points=(), independence=find_independence_points([PROFILE], BATCH))
    report = check_parity(run_double, run_double, plan=plan, make_feeds=make, subject=SUBJECT)
    assert report.points == ()
    assert "needs 2 samples in a batch, the data give 1" in report.notes[0]


def run_detector(feeds: Feeds) -> Outputs:
    x = np.abs(feeds["x"])
    return {"boxes": np.stack([x[0], x[0] + 1, x[0] + 2], axis=1), "scores": x[0] / 10}


def test_rows_are_matched_on_request() -> None:
    def run_shuffled(feeds: Feeds) -> Outputs:
        return {name: array[::-1].copy() for name, array in run_detector(feeds).items()}

    def run_short(feeds: Feeds) -> Outputs:
        return {name: array[1:] for name, array in run_detector(feeds).items()}

    assert check(run_detector, run_shuffled).verdict is Verdict.FAIL
    matched = check(run_detector, run_shuffled, match_rows=True)
    assert matched.verdict is Verdict.PASS
    assert "rows that stand elsewhere, matched by value" in get_reasons(matched)
    short = check(run_detector, run_short, match_rows=True)
    assert short.verdict is Verdict.FAIL
    assert "without a partner in the candidate: 3; extra rows" in get_reasons(short)


def test_rows_are_matched_for_the_noise_floor_too() -> None:
    def run_shuffled(feeds: Feeds) -> Outputs:
        return {name: a[::-1].copy() for name, a in run_detector(feeds).items()}

    rules = ComparisonRules(expect_emulation(run_shuffled, RECIPES["fp16"]))
    report = check(run_detector, run_shuffled, match_rows=True, rules=rules)
    assert report.verdict is Verdict.PASS
    assert report.points[0].outputs[0].noise_floor == 0.0


def test_memory_does_not_grow_with_the_samples() -> None:
    entry = OptimizationProfile("p", {"x": ShapeRange(*[(1, 40000)] * 3)})
    plan = make_plan(
        points=find_points([entry]),
        rules=ComparisonRules(expect_emulation(run_half_precision, RECIPES["fp16"])),
    )

    def measure_peak(samples: int) -> int:
        tracemalloc.start()
        check_parity(
            run_double, run_half_precision, plan=plan, make_feeds=make_feeds(samples),
            subject=SUBJECT,
        )  # fmt: skip
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    measure_peak(1)
    assert measure_peak(20) < 1.1 * measure_peak(3)
