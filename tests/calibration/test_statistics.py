"""Statistics: amax without running anything again, parts that merge."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from trtdeploy.calibration.histogram import MagnitudeHistogram
from trtdeploy.calibration.methods import MethodChoice, find_amax
from trtdeploy.calibration.statistics import (
    CalibrationData,
    CalibrationStatistics,
    merge_statistics,
)
from trtdeploy.config.calibration import CALIBRATION_METHODS
from trtdeploy.core.errors import InputError, UsageError
from trtdeploy.core.number_formats import FP8_E4M3

MODEL = "a" * 64


def count(values: Any) -> MagnitudeHistogram:
    histogram = MagnitudeHistogram()
    histogram.add(np.asarray(values, np.float32))
    return histogram


def make_statistics(
    seed: int = 0, model: str = MODEL, tensors: tuple[str, ...] = ("x", "act", "dead")
) -> CalibrationStatistics:
    rng = np.random.default_rng(seed)
    histograms = {name: count(rng.standard_t(4, 5000)) for name in tensors}
    if "dead" in histograms:
        histograms["dead"] = count(np.zeros(5000))
    data = CalibrationData(f"calib{seed}.npz (5 samples)", f"{seed:064x}", 5)
    return CalibrationStatistics(model, histograms, (data,), ("assumed",))


def test_each_tensor_gets_the_amax_of_its_method() -> None:
    statistics = make_statistics()
    choice = MethodChoice("minmax", (("act", "percentile"),), percentile=99.0)
    found = statistics.compute_amax(choice)
    act = statistics.histograms["act"]
    assert found == {
        "x": statistics.histograms["x"].largest,
        "act": find_amax(act, "percentile", percentile=99.0),
        "dead": 1.0,
    }
    assert found["act"] < 0.9 * act.largest
    assert [n for n, each in statistics.histograms.items() if not each.largest] == ["dead"]


def test_methods_and_kinds_can_be_compared() -> None:
    statistics = make_statistics()
    choices = [MethodChoice(each, percentile=99.0) for each in CALIBRATION_METHODS]
    amax = [statistics.compute_amax(each)["x"] for each in choices]
    assert len(set(amax)) > 2
    assert max(amax) == statistics.histograms["x"].largest
    narrow = statistics.compute_amax(MethodChoice("mse"))["x"]
    assert statistics.compute_amax(MethodChoice("mse"), FP8_E4M3)["x"] > narrow


def test_a_pattern_that_matches_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="'acts' matches no calibrated tensor") as caught:
        make_statistics().compute_amax(MethodChoice("mse", (("acts", "minmax"),)))
    assert caught.value.hint == "Did you mean 'act'?"


def test_merging_is_counting_both() -> None:
    parts = [make_statistics(seed) for seed in range(3)]
    merged = merge_statistics(parts)
    assert merged.samples == 15
    assert merged.notes == ("assumed",)
    assert [data.sha256 for data in merged.data] == [f"{seed:064x}" for seed in range(3)]
    for name in ("x", "act", "dead"):
        expected = MagnitudeHistogram()
        for part in parts:
            expected.merge(part.histograms[name])
        assert merged.histograms[name] == expected
    assert parts[0].histograms["x"].count == 5000
    choice = MethodChoice("entropy")
    backwards = merge_statistics(parts[::-1])
    assert backwards.compute_amax(choice) == merged.compute_amax(choice)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (make_statistics(1, model="b" * 64), "of different models: SHA-256 aaaaaaaaaaaa"),
        (make_statistics(1, tensors=("x", "act")), "only one of .* has measured 'dead'"),
        (make_statistics(0), "the same samples would be counted twice: calib0.npz"),
    ],
)
def test_what_does_not_belong_together_is_not_merged(
    other: CalibrationStatistics, message: str
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        merge_statistics([make_statistics(), other])
    assert caught.value.hint


def test_nothing_cannot_be_merged() -> None:
    with pytest.raises(UsageError, match="no calibration statistics"):
        merge_statistics([])


def test_selecting_names_what_is_missing() -> None:
    statistics = make_statistics()
    assert list(statistics.select(["dead", "x"]).histograms) == ["dead", "x"]
    wanted = ["x", *(f"t{i}" for i in range(9))]
    with pytest.raises(InputError, match="not 't0', 't1', 't2', 't3', 't4' and 4 more"):
        statistics.select(wanted)


def test_made_up_and_skipped_samples_are_flagged() -> None:
    first = make_statistics()
    skipped = replace(first.data[0], skipped=("calib.npz, sample 3: NaN",), sha256="c" * 64)
    made_up = replace(first.data[0], is_synthetic=True, sha256="d" * 64)
    merged = merge_statistics(
        [first, replace(first, data=(skipped,)), replace(first, data=(made_up,))]
    )
    assert not first.is_synthetic
    assert merged.is_synthetic
    assert merged.skipped == ("calib.npz, sample 3: NaN",)
