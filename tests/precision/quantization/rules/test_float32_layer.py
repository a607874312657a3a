from __future__ import annotations

from tests.precision.layer_rule_runs import find_kept_layers, tower
from tests.precision.quantized_models import image_model
from trtdeploy.precision.quantization.rules.float32_layer import KeepFloat32LayerRule

MODEL = image_model(*tower("x", "y", 3))


def test_a_layer_that_overflows_fp16_is_kept() -> None:
    kept = find_kept_layers(KeepFloat32LayerRule(), MODEL, "int8", (), {"y": 1e5})
    assert kept.keys() == {"t2"}
    assert kept["t2"].startswith("it stays FP32: 'y' reached 1e+05")


def test_where_everything_is_fp32_nothing_is_kept() -> None:
    assert not find_kept_layers(KeepFloat32LayerRule(), MODEL, "int8-fp32", (), {"y": 1e5})
