"""Sound models get no blocker, whatever the target."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import constant, in_memory, loaded, model, op, random_array, value
from tests.preflight.sound_models import HEALTHY
from trtdeploy.config.recipe import RECIPES
from trtdeploy.core.ranges import OptimizationProfile, ShapeRange
from trtdeploy.preflight.checking import check_model
from trtdeploy.preflight.target import CheckTarget

TARGETS = (
    CheckTarget("tensorrt_rtx", "1.7.1", RECIPES["fp16"]),
    CheckTarget("tensorrt", "8.6.2"),
    CheckTarget("tensorrt", "10.3.0"),
    CheckTarget("tensorrt", "11.4"),
    CheckTarget("tensorrt"),
    CheckTarget("onnxruntime"),
)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.engine_title)
@pytest.mark.parametrize("name", HEALTHY)
def test_sound_model_has_no_blocker(name: str, target: CheckTarget) -> None:
    report = check_model(in_memory(HEALTHY[name]()), target=target)
    assert report.blockers == ()


def test_model_is_not_changed() -> None:
    for make in HEALTHY.values():
        model = in_memory(make())
        before = model.proto.SerializeToString(deterministic=True)
        check_model(model, target=TARGETS[0])
        assert model.proto.SerializeToString(deterministic=True) == before
        assert model.changes == []


def test_weights_on_the_disk_are_not_missed(tmp_path: Path) -> None:
    proto = model(
        [op("MatMul", "x w", "h", "mm"), op("Reshape", "h target", "y", "fold")],
        [value("x", ("batch", 64))],
        [value("y", None)],
        [constant("w", random_array(64, 64)), constant("target", [0, 8, 8], "int64")],
    )
    model_file = loaded(proto, tmp_path)
    assert "w" in model_file.weights
    profile = OptimizationProfile("p", {"x": ShapeRange((1, 64), (2, 64), (3, 64))})
    report = check_model(model_file, target=TARGETS[0], optimization_profiles=[profile])
    assert report.findings == ()
