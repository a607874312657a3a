from __future__ import annotations

import numpy as np

from tests.builders import constant, op
from tests.precision.layer_rule_runs import find_kept_layers, tower
from tests.precision.quantized_models import conv, conv_weight, image_model
from trtdeploy.precision.quantization.rules.last_layer import KeepLastLayerRule


def test_every_head_is_kept() -> None:
    nodes, weights = tower("x", "trunk")
    heads = [
        conv("trunk head_w", "scores"),
        op("Sigmoid", "scores", "p"),
        conv("trunk head_w", "sizes"),
        op("Concat", "p sizes", "y", axis=1),
    ]
    proto = image_model([*nodes, *heads], [*weights, conv_weight("head_w", 4, 16)])
    assert list(find_kept_layers(KeepLastLayerRule(), proto)) == ["scores", "sizes"]


def test_off_in_small_models() -> None:
    assert not find_kept_layers(KeepLastLayerRule(), image_model(*tower("x", "y", 9)))


def test_what_only_a_box_decoder_follows_is_last() -> None:
    nodes, weights = tower("x", "trunk", 12)
    decode = [
        op("Softmax", "trunk", "p", axis=1),
        op("Transpose", "p", "moved", perm=[0, 1, 3, 2]),
        op("Conv", "moved sides", "y", "decode"),
    ]
    sides = constant("sides", np.arange(16).reshape(1, 16, 1, 1))
    proto = image_model([*nodes, *decode], [*weights, sides])
    assert list(find_kept_layers(KeepLastLayerRule(), proto)) == ["t11", "decode"]
