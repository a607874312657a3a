from __future__ import annotations

import numpy as np
import pytest

from tests.builders import constant, op
from tests.precision.layer_rule_runs import find_kept_layers
from tests.precision.quantized_models import conv, conv_weight, image_model
from trtdeploy.precision.quantization.rules.box_decode import KeepBoxDecodeRule


@pytest.mark.parametrize(("op_type", "kept"), [("Softmax", ["decode"]), ("Sigmoid", [])])
def test_a_convolution_of_probabilities(op_type: str, kept: list[str]) -> None:
    nodes = [
        conv("x w", "c"),
        op(op_type, "c", "p"),
        op("Transpose", "p", "t", perm=[0, 1, 3, 2]),
        op("Conv", "t sides", "y", "decode"),
    ]
    sides = constant("sides", np.arange(16).reshape(1, 16, 1, 1))
    proto = image_model(nodes, [conv_weight("w", 16, 16), sides])
    assert list(find_kept_layers(KeepBoxDecodeRule(), proto)) == kept
