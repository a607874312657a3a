from __future__ import annotations

import pytest

from tests.builders import chain
from tests.precision.rule_runs import find_kept
from trtdeploy.precision.rules.measured_range import KeepMeasuredRangeRule

MODEL = chain(["Relu", "Exp", "Neg"])


@pytest.mark.parametrize(
    ("ranges", "kept"),
    [
        ({}, set()),
        ({"v1": 100.0}, set()),
        ({"v1": 70_000.0}, {"v1", "v2"}),
        ({"v1": 40_000.0}, {"v1", "v2"}),
        ({"v1": 32_000.0}, set()),
        ({"x": 70_000.0}, {"v0"}),
        ({"y": 70_000.0}, {"v2"}),
        ({"v0": 1e-6}, {"v0", "v1"}),
        ({"v0": 0.0}, set()),
        ({"v0": float("inf")}, {"v0", "v1"}),
        ({"v0": float("nan")}, set()),
        ({"somebody else's": 1e9}, set()),
    ],
)
def test_readers_and_writers_of_values_out_of_range(
    ranges: dict[str, float], kept: set[str]
) -> None:
    assert find_kept(KeepMeasuredRangeRule(), MODEL, ranges=ranges).keys() == kept


def test_reasons_name_value_and_limit() -> None:
    kept = find_kept(KeepMeasuredRangeRule(), MODEL, ranges={"v0": 7e4, "y": 1e-6})
    assert kept["v0"].startswith("'v0' reached 7e+04 in FP32; float16 ends at 65504")
    assert kept["v2"].startswith("'y' never exceeded 1e-06 in FP32")


def test_bfloat16_has_the_range_of_float32() -> None:
    ranges = {"v0": 1e30, "v1": 1e-30}
    assert not find_kept(KeepMeasuredRangeRule(), MODEL, "bf16", ranges)
    assert find_kept(KeepMeasuredRangeRule(), MODEL, "bf16", {"v0": 3e38})
