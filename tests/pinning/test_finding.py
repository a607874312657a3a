"""The search for pins on real models: typed, emulated and run for every set."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto

from tests.builders import constant, model, op, save, value
from trtdeploy.building.build import build_model
from trtdeploy.building.request import BuildRequest
from trtdeploy.config.loading import load_deploy_profile
from trtdeploy.core.errors import UsageError
from trtdeploy.core.steps import ProgressEvent
from trtdeploy.pinning.finding import find_pins
from trtdeploy.pinning.report import PinningReport, render_deploy_profile
from trtdeploy.pinning.request import PinRequest

WIDTH = 32
SPOILED = "m3"
SPREAD = 300.0


def outlier_network() -> ModelProto:
    """Return six MatMuls; one channel in front of ``m3`` is 300 times as large as the others."""
    rng = np.random.default_rng(4)
    weights = [rng.normal(0, (2 / WIDTH) ** 0.5, (WIDTH, WIDTH)) for _ in range(6)]
    weights[2][:, 5] *= SPREAD
    weights[3][5] /= SPREAD
    nodes, current = [], "x"
    for i in range(6):
        nodes += [op("MatMul", f"{current} w{i}", f"m{i}"), op("Relu", f"m{i}", f"r{i}")]
        current = f"r{i}"
    nodes.append(op("MatMul", f"{current} head", "y"))
    constants = [constant(f"w{i}", w) for i, w in enumerate(weights)]
    constants.append(constant("head", rng.normal(0, 0.2, (WIDTH, 10))))
    return model(nodes, [value("x", ("N", WIDTH))], [value("y", ("N", 10))], constants)


def cancelling_network() -> ModelProto:
    """Return a graph in which FP16 loses digits in one place: (x + 1000) - 1000."""
    rng = np.random.default_rng(5)
    nodes = [
        op("MatMul", "x w0", "a"),
        op("Relu", "a", "b"),
        op("Add", "b far", "c"),
        op("Sub", "c far", "d"),
        op("MatMul", "d w1", "e"),
        op("Tanh", "e", "y"),
    ]
    constants = [constant(f"w{i}", rng.normal(0, 0.25, (WIDTH, WIDTH))) for i in range(2)]
    constants.append(constant("far", np.full(WIDTH, 1000.0)))
    shape = ("N", WIDTH)
    return model(nodes, [value("x", shape)], [value("y", shape)], constants)


def save_samples(path: Path, seed: int, *, labelled: bool = False) -> Path:
    samples = np.random.default_rng(seed).normal(0, 1, (24, WIDTH)).astype(np.float32)
    labels = {"labels": np.zeros(24, np.int64)} if labelled else {}
    np.savez(path, x=samples, **labels)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("pinning")
    save(outlier_network(), found / "outlier.onnx")
    save(cancelling_network(), found / "cancelling.onnx")
    save_samples(found / "calib.npz", 1)
    save_samples(found / "data.npz", 2, labelled=True)
    return found


def request_int8(folder: Path, **changes: object) -> PinRequest:
    request = PinRequest(
        model=folder / "outlier.onnx",
        profile="rtx4090-int8",
        overrides=("calibration.method=minmax",),
        calibration_data=(folder / "calib.npz",),
        data=folder / "data.npz",
        target="sqnr=25",
    )
    return replace(request, **changes)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def report(folder: Path) -> PinningReport:
    return find_pins(request_int8(folder))


def test_the_layer_behind_the_outlier_is_found_pinned_and_explained(report: PinningReport) -> None:
    assert report.reached
    assert report.pins == (f"fp16:{SPOILED}",)
    assert report.outcome.plain.excess > 1
    assert "% rounds to 0" in report.reasons[SPOILED]
    assert report.reasons[SPOILED].startswith("input")
    alone = report.outcome.alone
    assert min(alone, key=lambda name: alone[name].sqnr_db or 999.0) == SPOILED


def test_less_is_quantized_with_pins_and_the_share_says_so(report: PinningReport) -> None:
    plain, hybrid = report.quantized_share
    assert plain is not None
    assert hybrid is not None
    assert 0 < hybrid < plain <= 1


@pytest.mark.parametrize("recipe", ["int8-fp32", "fp8"])
def test_other_quantizing_recipes(folder: Path, recipe: str) -> None:
    profile = "rtx4090-fp8" if recipe == "fp8" else "rtx4090-int8"
    overrides = ("calibration.method=minmax", f"recipe={recipe}")
    report = find_pins(request_int8(folder, profile=profile, overrides=overrides, target="sqnr=32"))
    assert report.reached
    assert report.pins
    assert report.precision == ("fp32" if recipe == "int8-fp32" else "fp16")
    assert report.outcome.hybrid.value is not None
    assert report.outcome.hybrid.value >= 32


def test_the_profile_that_is_written_builds_what_was_measured(
    report: PinningReport, folder: Path
) -> None:
    written = folder / "hybrid.yaml"
    written.write_text(render_deploy_profile(report, folder), encoding="utf-8")
    assert load_deploy_profile(str(written)).profile.precision.list_pins() == report.pins
    built = build_model(
        BuildRequest(
            model=folder / "outlier.onnx",
            profile=str(written),
            overrides=("calibration.method=minmax",),
            calibration_data=(folder / "calib.npz",),
            data=folder / "data.npz",
            output_dir=folder / "built",
            prepare_only=True,
        )
    )
    outputs = built.manifest.parity.points[0].outputs
    decision = built.manifest.quantization.decisions[SPOILED]
    assert decision.rule == "KeepPinnedLayerRule"
    assert outputs[0].metrics.sqnr_db > 25


def test_names_are_quoted_and_a_profile_of_ones_own_is_extended(
    report: PinningReport, tmp_path: Path
) -> None:
    own = tmp_path / "mine.yaml"
    own.write_text("extends: rtx4090-int8\nprecision: {nodes: {m1: fp16}}\n", encoding="utf-8")
    odd = 'a "b": {c}\\'
    candidate = replace(report.outcome.pinned[0], nodes=(odd,))
    outcome = replace(report.outcome, pinned=(candidate,))
    changed = replace(report, outcome=outcome, deploy_profile=str(own))
    written = tmp_path / "sub" / "hybrid.yaml"
    written.parent.mkdir()
    written.write_text(render_deploy_profile(changed, written.parent), encoding="utf-8")
    assert load_deploy_profile(str(written)).profile.precision.nodes == {"m1": "fp16", odd: "fp16"}


@pytest.mark.parametrize("recipe", ["int8", "fp16"])
def test_narrow_inputs_are_fed_as_a_caller_would(
    folder: Path, recipe: str, report: PinningReport
) -> None:
    overrides = ("calibration.method=minmax", "precision.io=recipe")
    if recipe == "int8":
        narrow = find_pins(request_int8(folder, overrides=overrides))
        assert narrow.pins == report.pins
    else:
        request = PinRequest(folder / "cancelling.onnx", "rtx4090-fp16", overrides[1:])
        narrow = find_pins(replace(request, data=folder / "data.npz", target="sqnr=50"))
        assert narrow.pins
    assert narrow.reached


def test_pins_of_the_user_stay_and_are_no_candidates(folder: Path) -> None:
    report = find_pins(request_int8(folder, pins=(f"fp16:{SPOILED}",)))
    assert report.outcome.plain.reached
    assert SPOILED not in {candidate.name for candidate in report.outcome.candidates}


def test_a_target_beyond_fp16_is_not_reached_and_the_way_out_is_named(folder: Path) -> None:
    report = find_pins(request_int8(folder, target="sqnr=120"))
    assert not report.reached
    assert report.pins == ()
    assert any("float16 alone misses it" in note for note in report.notes)


@pytest.mark.parametrize(("recipe", "target"), [("fp16", "sqnr=50"), ("bf16", "sqnr=30")])
def test_a_narrow_type_is_widened_where_digits_cancel(
    folder: Path, recipe: str, target: str
) -> None:
    report = find_pins(
        PinRequest(
            folder / "cancelling.onnx",
            f"rtx4090-{recipe}",
            data=folder / "data.npz",
            target=target,
        )
    )
    assert report.reached
    assert {"c", "d"} <= set(report.pins) <= {"b", "c", "d"}
    assert report.precision == "fp32"
    assert report.outcome.plain.value is not None
    assert report.outcome.plain.value < 40


def test_without_a_target_the_tolerance_of_the_recipe_is_one(folder: Path) -> None:
    report = find_pins(request_int8(folder, target=""))
    assert str(report.target) == "the recipe's parity tolerance"
    assert report.reached


def test_a_task_metric_is_a_target(folder: Path) -> None:
    metric = f"{__name__}:count_negative_distance"
    report = find_pins(request_int8(folder, target="", metric=metric, max_drop=0.05))
    assert report.reached
    assert report.pins == (f"fp16:{SPOILED}",)


def count_negative_distance(outputs: dict[str, np.ndarray], _labels: np.ndarray) -> float:
    """Score 0 for the FP32 outputs of this test's samples, less the farther off."""
    return -float(np.abs(outputs["y"] - REFERENCE["y"]).max() / np.abs(REFERENCE["y"]).max())


REFERENCE: dict[str, np.ndarray] = {}


@pytest.fixture(autouse=True)
def reference(folder: Path) -> None:
    from trtdeploy.backends.onnxruntime.session import OnnxRuntimeSession

    if not REFERENCE:
        with OnnxRuntimeSession(folder / "outlier.onnx", optimize=False) as session:
            REFERENCE.update(session.run({"x": np.load(folder / "data.npz")["x"]}))


def test_made_up_inputs_are_said_to_be(folder: Path) -> None:
    report = find_pins(
        request_int8(
            folder, data=None, calibration_data=(), synthetic_calibration=True, target="sqnr=10"
        )
    )
    assert sum("made-up inputs" in note for note in report.notes) == 2


def test_progress_tells_runs_and_time(folder: Path) -> None:
    events: list[ProgressEvent] = []
    find_pins(request_int8(folder), events.append)
    searching = [event for event in events if event.step == "search" and event.fraction]
    assert any("s left" in event.detail for event in searching)
    assert {event.step for event in events if event.finished} == {"calibrate", "search"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"profile": "cpu-fp32"}, "nothing to pin"),
        ({"target": "loud"}, "no target"),
        ({"metric": "top1"}, "--target or --metric"),
        ({"metric": "top1", "target": "", "data": None}, "--data"),
        ({"samples": 0}, "at least 1 sample"),
        ({"most_runs": 3}, "runs"),
        ({"calibration_data": ()}, "samples"),
    ],
)
def test_requests_without_sense_are_refused(
    folder: Path, changes: dict[str, object], words: str
) -> None:
    with pytest.raises(UsageError) as caught:
        find_pins(request_int8(folder, **changes))
    assert words in f"{caught.value.message} {caught.value.hint}"
