from __future__ import annotations

import pytest

from tests.precision.layer_rule_runs import find_kept_layers, tower
from tests.precision.quantized_models import image_model
from trtdeploy.precision.quantization.rules.pinned_layer import KeepPinnedLayerRule

MODEL = image_model(*tower("x", "y", 3))


@pytest.mark.parametrize(
    ("pin", "reason"),
    [
        ("t1", "pinned to FP32 by 't1'"),
        ("fp32:t1", "pinned to FP32 by 'fp32:t1'"),
        ("fp16:t[1]", "pinned to FP16 by 'fp16:t[1]'"),
    ],
)
def test_floating_point_pins_keep_a_layer(pin: str, reason: str) -> None:
    assert find_kept_layers(KeepPinnedLayerRule(), MODEL, "int8", [pin]) == {"t1": reason}


def test_pins_to_8_bits_keep_nothing() -> None:
    assert not find_kept_layers(KeepPinnedLayerRule(), MODEL, "int8", ["fp8:t1", "int8:op:Conv"])
