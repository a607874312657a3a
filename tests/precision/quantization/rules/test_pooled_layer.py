from __future__ import annotations

import numpy as np
import pytest

from tests.builders import constant, op
from tests.precision.layer_rule_runs import find_kept_layers, tower
from tests.precision.quantized_models import conv_weight, image_model
from trtdeploy.precision.quantization.rules.pooled_layer import KeepPooledLayerRule

POOLS = [
    (op("GlobalAveragePool", "t", "g"), True),
    (op("ReduceMean", "t", "g", axes=[2, 3]), True),
    (op("ReduceMean", "t", "g", axes=[-1, -2]), True),
    (op("ReduceMax", "t", "g", axes=[1]), False),
    (op("AveragePool", "t", "g", kernel_shape=[2, 2]), False),
]


@pytest.mark.parametrize(("pool", "found"), POOLS)
def test_squeeze_and_excite(pool: object, found: bool) -> None:
    nodes, weights = tower("x", "t")
    excite = [
        pool,
        op("Conv", "g w1", "s", "fc1"),
        op("Relu", "s", "r"),
        op("Conv", "r w2", "e", "fc2"),
        op("HardSigmoid", "e", "h"),
        op("Mul", "t h", "m"),
        op("Conv", "m w1", "y", "after"),
    ]
    made = [conv_weight("w1", 16, 16, 1), conv_weight("w2", 16, 16, 1)]
    proto = image_model([*nodes, *excite], [*weights, *made])
    kept = find_kept_layers(KeepPooledLayerRule(), proto)
    assert list(kept) == (["fc1", "fc2"] if found else [])


def test_axes_may_be_an_operand_and_small_models_are_left_alone() -> None:
    squeeze = [op("ReduceMean", "t axes", "g"), op("Conv", "g w1", "y", "fc1")]
    for count, kept in ((10, ["fc1"]), (5, [])):
        nodes, weights = tower("x", "t", count)
        made = [conv_weight("w1", 16, 16, 1), constant("axes", [2, 3], np.int64)]
        proto = image_model([*nodes, *squeeze], [*weights, *made])
        proto.opset_import[0].version = 18
        assert list(find_kept_layers(KeepPooledLayerRule(), proto)) == kept
