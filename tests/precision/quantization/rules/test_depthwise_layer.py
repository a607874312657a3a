from __future__ import annotations

import pytest

from tests.builders import constant, op, random_array
from tests.precision.layer_rule_runs import find_kept_layers, tower
from tests.precision.quantized_models import image_model
from trtdeploy.precision.quantization.rules.depthwise_layer import KeepDepthwiseLayerRule


@pytest.mark.parametrize("recipe", ["int8", "fp8"])
@pytest.mark.parametrize(
    ("shape", "groups", "kept"),
    [
        ((16, 1, 3, 3), 16, True),
        ((32, 1, 3, 3), 16, True),
        ((16, 16, 3, 3), 1, False),
        ((16, 2, 3, 3), 8, False),
    ],
)
def test_one_channel_each(shape: tuple[int, ...], groups: int, kept: bool, recipe: str) -> None:
    nodes, weights = tower("x", "t")
    tested = op("Conv", "t w", "y", "tested", group=groups)
    proto = image_model([*nodes, tested], [*weights, constant("w", random_array(*shape))])
    found = find_kept_layers(KeepDepthwiseLayerRule(), proto, recipe)
    assert found.keys() == ({"tested"} if kept else set())
    if kept:
        assert "a sum of 9 products" in found["tested"]


def test_convolutions_of_one_grey_channel_are_not_depthwise() -> None:
    nodes, weights = tower("x", "t")
    grey = op("Conv", "g w", "y", "tested")
    one = op("Conv", "t one", "g", "one")
    extra = [constant("w", random_array(16, 1, 3, 3)), constant("one", random_array(1, 16, 1, 1))]
    proto = image_model([*nodes, one, grey], [*weights, *extra])
    assert not find_kept_layers(KeepDepthwiseLayerRule(), proto)


def test_off_in_small_models() -> None:
    tested = op("Conv", "x w", "y", "tested", group=16)
    proto = image_model([tested], [constant("w", random_array(16, 1, 3, 3))], channels=16)
    assert not find_kept_layers(KeepDepthwiseLayerRule(), proto)
