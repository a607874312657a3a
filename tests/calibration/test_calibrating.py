"""Calibration of real models in ONNX Runtime: one pass, no sample kept, none miscounted."""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

from tests.builders import constant, model, op, save, value
from trtdeploy.calibration.calibrating import (
    CalibrationProgress,
    CalibrationRequest,
    calibrate_model,
)
from trtdeploy.calibration.document import save_statistics
from trtdeploy.calibration.histogram import MagnitudeHistogram
from trtdeploy.calibration.methods import MethodChoice
from trtdeploy.calibration.statistics import CalibrationStatistics
from trtdeploy.config.calibration import CALIBRATION_METHODS
from trtdeploy.config.recipe import find_recipe
from trtdeploy.core.errors import InputError, UsageError
from trtdeploy.core.ranges import OptimizationProfile, ShapeRange
from trtdeploy.graph.hashing import hash_model
from trtdeploy.graph.index import build_index
from trtdeploy.graph.loading import load_model
from trtdeploy.precision.quantization.planning import plan_quantization
from trtdeploy.precision.quantization.preparation import prepare_for_quantization

SIZE = 8
ROOT = Path(__file__).resolve().parents[2]


def convolutions(batch: int | str = "N", layers: int = 3, size: int = SIZE) -> ModelProto:
    """Return ``x -> (Conv, Relu) * layers -> pool -> Gemm``: case o07 in small."""
    rng = np.random.default_rng(107)
    nodes, constants, current, channels = [], [], "x", 3
    for i in range(layers):
        weights = rng.normal(0, np.sqrt(2 / (channels * 9)), (16, channels, 3, 3))
        constants += [constant(f"w{i}", weights), constant(f"b{i}", rng.normal(0, 0.05, 16))]
        nodes += [
            op("Conv", f"{current} w{i} b{i}", f"c{i}", pads=[1, 1, 1, 1]),
            op("Relu", f"c{i}", f"r{i}"),
        ]
        current, channels = f"r{i}", 16
    nodes += [
        op("GlobalAveragePool", current, "gap"),
        op("Flatten", "gap", "fl"),
        op("Gemm", "fl wf", "y", "fc", transB=1),
    ]
    constants.append(constant("wf", rng.normal(0, 0.3, (10, 16))))
    shape = (batch, 3, size, size)
    return model(nodes, [value("x", shape)], [value("y", (batch, 10))], constants)


def dead_channels() -> ModelProto:
    """Return case o08: a dead output channel, and ``z``, which is always zero."""
    rng = np.random.default_rng(108)
    first, bias = rng.normal(0, 0.3, (8, 3, 3, 3)), rng.normal(0, 0.1, 8)
    first[5], bias[5] = 0, 0
    nodes = [
        op("Conv", "x w0 b0", "c0", pads=[1, 1, 1, 1]),
        op("Relu", "c0", "r0"),
        op("Sub", "r0 hundred", "sub"),
        op("Relu", "sub", "z"),
        op("Conv", "z w1", "c1", pads=[1, 1, 1, 1]),
        op("Conv", "r0 w2", "c2", pads=[1, 1, 1, 1]),
        op("Add", "c1 c2", "y"),
    ]
    constants = [
        constant("w0", first),
        constant("b0", bias),
        constant("hundred", 100.0),
        constant("w1", rng.normal(0, 0.2, (4, 8, 3, 3))),
        constant("w2", rng.normal(0, 0.2, (4, 8, 3, 3))),
    ]
    shape = ("N", 3, SIZE, SIZE)
    return model(nodes, [value("x", shape)], [value("y", ("N", 4, SIZE, SIZE))], constants)


def images(count: int, seed: int = 0, size: int = SIZE) -> Any:
    return np.random.default_rng(seed).normal(0, 1, (count, 3, size, size)).astype(np.float32)


def save_samples(path: Path, samples: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, x=samples)
    return path


def request(
    proto: ModelProto, folder: Path, measured: tuple[str, ...], *data: Path, batch: int = 1
) -> CalibrationRequest:
    loaded = load_model(save(proto, folder / "model.onnx"))
    prepared = prepare_for_quantization(loaded, find_recipe("int8"))
    shapes = {
        spec.name: tuple(batch if isinstance(dim, str) else dim for dim in spec.shape or ())
        for spec in prepared.input_specs()
    }
    profile = OptimizationProfile("p", {n: ShapeRange(s, s, s) for n, s in shapes.items()})
    return CalibrationRequest(prepared, hash_model(loaded), measured, profile, data)


def count(values: Any) -> MagnitudeHistogram:
    histogram = MagnitudeHistogram()
    histogram.add(values)
    return histogram


VALUES = ("x", "r0", "r1", "gap")


def test_values_are_those_that_numpy_computes(tmp_path: Path) -> None:
    samples = images(9)
    proto = model(
        [op("Mul", "x two", "doubled"), op("Neg", "doubled", "y")],
        [value("x", ("N", 3, SIZE, SIZE))],
        [value("y", ("N", 3, SIZE, SIZE))],
        [constant("two", 2.0)],
    )
    data = save_samples(tmp_path / "c.npz", samples)
    found = calibrate_model(request(proto, tmp_path, ("x", "doubled", "y"), data))
    assert found.histograms["x"] == count(samples)
    assert found.histograms["doubled"] == count(2 * samples)
    assert found.histograms["y"] == count(-2 * samples)
    assert list(found.histograms) == ["x", "doubled", "y"]


def test_any_order_and_split_gives_the_same(tmp_path: Path) -> None:
    samples = images(70)
    order = np.random.default_rng(5).permutation(70)
    save_samples(tmp_path / "many/a.npz", samples[order[:11]])
    save_samples(tmp_path / "many/b.npz", samples[order[11:12]])
    save_samples(tmp_path / "many/c.npz", samples[order[12:]])
    whole = save_samples(tmp_path / "whole.npz", samples)
    expected = calibrate_model(request(convolutions(), tmp_path, VALUES, whole))
    assert expected.samples == 70
    for batch in (16, 128):
        found = calibrate_model(request(convolutions(), tmp_path, VALUES, whole, batch=batch))
        assert found.histograms == expected.histograms
    shuffled = calibrate_model(request(convolutions(), tmp_path, VALUES, tmp_path / "many"))
    assert shuffled.histograms == expected.histograms
    assert shuffled.samples == 70


@pytest.mark.parametrize("batch", [16, 128])
def test_a_fixed_batch_uses_every_sample_once(tmp_path: Path, batch: int) -> None:
    data = save_samples(tmp_path / "c.npz", images(70))
    single = calibrate_model(request(convolutions(), tmp_path, VALUES, data))
    found = calibrate_model(request(convolutions(batch), tmp_path, VALUES, data))
    assert found.samples == 70
    assert found.histograms["x"] == single.histograms["x"]
    for method in CALIBRATION_METHODS:
        expected = single.compute_amax(MethodChoice(method))
        amax = found.compute_amax(MethodChoice(method))
        assert amax == pytest.approx(expected, rel=0.01)
    counts = {name: each.count for name, each in found.histograms.items()}
    assert counts == {name: each.count for name, each in single.histograms.items()}
    assert found.notes == ()


def test_padding_that_cannot_be_told_apart_is_reported(tmp_path: Path) -> None:
    proto = model(
        [op("Transpose", "x", "t", perm=[1, 0]), op("Relu", "t", "y")],
        [value("x", (4, 3))],
        [value("y", (3, 4))],
    )
    data = save_samples(tmp_path / "c.npz", np.ones((5, 3), np.float32))
    found = calibrate_model(request(proto, tmp_path, ("x", "t"), data))
    assert {name: each.count for name, each in found.histograms.items()} == {"x": 15, "t": 24}
    assert found.notes == (
        "rows that fill the last batch, or were to be left out, were counted in 't'",
    )


def test_bad_samples_are_named(tmp_path: Path) -> None:
    bad = images(14)
    bad[12, 0, 3, 3], bad[13, 1, 0, 0] = np.nan, np.inf
    data = save_samples(tmp_path / "bad.npz", bad)
    with pytest.raises(InputError, match=r"bad.npz, sample 12, input 'x': 1 NaN and 0 infinite"):
        calibrate_model(request(dead_channels(), tmp_path, ("r0", "z"), data))


def test_bad_samples_are_left_out_on_request(tmp_path: Path) -> None:
    samples = images(12)
    bad = np.concatenate([samples, samples[:2]])
    bad[12, 0, 3, 3], bad[13, 1, 0, 0] = np.nan, np.inf
    clean_data = save_samples(tmp_path / "clean.npz", samples)
    bad_data = save_samples(tmp_path / "bad.npz", bad)
    clean = calibrate_model(request(dead_channels(), tmp_path, ("r0", "z"), clean_data))
    asked = request(dead_channels(), tmp_path, ("r0", "z"), bad_data)
    found = calibrate_model(replace(asked, on_nonfinite="skip"))
    assert found.histograms == clean.histograms
    assert found.samples == 12
    assert [text.split(str(tmp_path))[1] for text in found.skipped] == [
        "/bad.npz, sample 12, input 'x': 1 NaN and 0 infinite values",
        "/bad.npz, sample 13, input 'x': 0 NaN and 1 infinite values",
    ]
    assert "samples left out because of NaN or infinity: 2" in found.notes
    assert [name for name, each in found.histograms.items() if not each.largest] == ["z"]
    for method in CALIBRATION_METHODS:
        amax = found.compute_amax(MethodChoice(method))
        assert all(0 < each < np.inf for each in amax.values())
        assert amax["z"] == 1.0


def overflowing(batch: int | str = "N") -> ModelProto:
    return model(
        [op("Exp", "x", "e"), op("Relu", "e", "y")],
        [value("x", (batch, 3))],
        [value("y", (batch, 3))],
    )


@pytest.mark.parametrize("batch", ["N", 4])
def test_overflow_inside_the_model_is_named_or_skipped(tmp_path: Path, batch: int | str) -> None:
    samples = np.random.default_rng(0).normal(size=(10, 3)).astype(np.float32)
    samples[6, 1] = 100.0
    data = save_samples(tmp_path / "c.npz", samples)
    asked = request(overflowing(batch), tmp_path, ("x", "e"), data)
    message = "c.npz, sample 6, tensor 'e': 0 NaN and 1 infinite values, computed from finite"
    with pytest.raises(InputError, match=message):
        calibrate_model(asked)
    found = calibrate_model(replace(asked, on_nonfinite="skip"))
    assert found.samples == 9
    assert found.histograms["x"] == count(np.delete(samples, 6, axis=0))
    assert found.histograms["e"].count == 27
    assert [text.split("/")[-1] for text in found.skipped] == [
        message.replace(" finite", " finite inputs")
    ]


def test_a_calibration_without_a_usable_sample_fails(tmp_path: Path) -> None:
    data = save_samples(tmp_path / "c.npz", np.full((2, 3), 200.0, np.float32))
    asked = request(overflowing(), tmp_path, ("e",), data)
    with pytest.raises(InputError, match=r"no usable sample: the first of 2 .* sample 0, tensor"):
        calibrate_model(replace(asked, on_nonfinite="skip"))


def test_a_sample_that_does_not_fit_is_named(tmp_path: Path) -> None:
    proto = model(
        [op("Reshape", "x shape", "y")],
        [value("x", ("N", "length"))],
        [value("y", (None, 4))],
        [constant("shape", [-1, 4], np.int64)],
    )
    data = save_samples(tmp_path / "c.npz", np.ones((2, 6), np.float32))
    with pytest.raises(InputError, match=r"c.npz, sample 0: ONNX Runtime cannot run the model"):
        calibrate_model(request(proto, tmp_path, ("y",), data))


def test_without_data_nothing_is_calibrated(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="calibration needs samples") as caught:
        calibrate_model(request(convolutions(), tmp_path, VALUES))
    assert "--synthetic-calib" in caught.value.hint


def test_made_up_data_is_flagged(tmp_path: Path) -> None:
    asked = replace(request(convolutions(), tmp_path, VALUES), synthetic_samples=3)
    found = calibrate_model(asked)
    assert found.is_synthetic
    assert found.samples == 3
    assert found.data[0].description == "synthetic (3 samples)"
    assert found.histograms["x"].count == 3 * 3 * SIZE * SIZE
    assert any("synthetic input 'x'" in note for note in found.notes)
    assert calibrate_model(asked) == found
    data = save_samples(tmp_path / "c.npz", images(2))
    real = calibrate_model(replace(asked, data=(data,)))
    assert not real.is_synthetic


def test_earlier_calibrations_are_merged(tmp_path: Path) -> None:
    samples = images(12)
    first = save_samples(tmp_path / "first.npz", samples[:5])
    rest = save_samples(tmp_path / "rest.npz", samples[5:])
    asked = request(convolutions(), tmp_path, VALUES, first)
    file = tmp_path / "calibration.json"
    save_statistics(calibrate_model(asked), file, MethodChoice("entropy"))
    merged = calibrate_model(replace(asked, data=(rest, file)))
    whole = calibrate_model(replace(asked, data=(save_samples(tmp_path / "all.npz", samples),)))
    assert merged.histograms == whole.histograms
    assert merged.samples == 12
    alone = calibrate_model(replace(asked, data=(file,), measured=("r0",)))
    assert list(alone.histograms) == ["r0"]

    with pytest.raises(InputError, match="same samples would be counted twice"):
        calibrate_model(replace(asked, data=(file, first)))
    with pytest.raises(InputError, match="calibrates another model: SHA-256"):
        calibrate_model(replace(asked, data=(file,), model_sha256="f" * 64))
    with pytest.raises(InputError, match="measured 4 tensors, and not 'c0'"):
        calibrate_model(replace(asked, data=(file,), measured=("c0",)))


def test_progress_reaches_the_end(tmp_path: Path) -> None:
    data = [save_samples(tmp_path / f"{n}.npz", images(n)) for n in (4, 5)]
    seen: list[CalibrationProgress] = []
    calibrate_model(request(convolutions(), tmp_path, VALUES, *data), seen.append)
    assert [each.samples_total for each in seen] == [9] * len(seen)
    assert seen[-1].samples_done == 9
    assert seen[-1].remaining_s == 0.0
    done = [each.samples_done for each in seen]
    assert done == sorted(done)
    assert CalibrationProgress(2, 6, 1.0).remaining_s == 2.0
    assert CalibrationProgress(0, 6, 1.0).remaining_s is None


def test_an_interrupted_calibration_leaves_no_thread(tmp_path: Path) -> None:
    data = save_samples(tmp_path / "c.npz", images(20))

    def interrupt(_progress: CalibrationProgress) -> None:
        raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        calibrate_model(request(convolutions(), tmp_path, VALUES, data), interrupt)
    assert threading.active_count() == before


def test_a_value_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    data = save_samples(tmp_path / "c.npz", images(1))
    with pytest.raises(UsageError, match="the model computes no value 'nothing'"):
        calibrate_model(request(convolutions(), tmp_path, ("nothing",), data))


def test_an_input_alone_can_be_measured(tmp_path: Path) -> None:
    samples = images(3)
    data = save_samples(tmp_path / "c.npz", samples)
    found = calibrate_model(request(convolutions(), tmp_path, ("x",), data))
    assert found.histograms == {"x": count(samples)}


def test_what_a_plan_needs_is_measured(tmp_path: Path) -> None:
    data = save_samples(tmp_path / "c.npz", images(3))
    asked = request(convolutions(layers=4), tmp_path, (), data)
    plan = plan_quantization(build_index(asked.model), find_recipe("int8"))
    found = calibrate_model(replace(asked, measured=plan.measured))
    assert plan.measured
    assert tuple(found.compute_amax(MethodChoice("mse"))) == plan.measured


MEASURE_PEAK = """
import sys
from pathlib import Path
from tests.calibration.test_calibrating import calibrate_model, convolutions, request
folder, data = map(Path, sys.argv[1:])
asked = request(convolutions(layers=4, size=96), folder, ("x", "r0", "r1", "r2", "r3"), data)
statistics = calibrate_model(asked)
# ru_maxrss would start from the memory of the process that started this one
status = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
print(statistics.samples, status["VmHWM"].split()[0])
"""
"""Each sample computes 2.4 MB that are measured: 72 of them would be 170 MB."""


def test_memory_does_not_grow_with_the_samples(tmp_path: Path) -> None:
    peaks = []
    for samples in (8, 72):
        data = save_samples(tmp_path / f"{samples}.npz", images(samples, size=96))
        command = [sys.executable, "-c", MEASURE_PEAK, str(tmp_path), str(data)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        counted, kibibytes = map(int, done.stdout.split())
        assert counted == samples
        peaks.append(kibibytes)
    assert peaks[1] < 1.05 * peaks[0]


def test_results_are_equal_however_runs_overlap(tmp_path: Path) -> None:
    data = save_samples(tmp_path / "c.npz", images(40))
    asked = request(convolutions(), tmp_path, VALUES, data)
    found: list[CalibrationStatistics] = [calibrate_model(asked) for _ in range(3)]
    assert found[0] == found[1] == found[2]
