from __future__ import annotations

import numpy as np

from tests.builders import branch_model, constant, loop_model, op
from tests.precision.layer_rule_runs import find_kept_layers
from trtdeploy.precision.quantization.rules.nested_layer import KeepNestedLayerRule

WEIGHT = constant("w", np.eye(4))


def test_layers_of_branches_are_kept_and_those_outside_are_not() -> None:
    proto = branch_model(
        [op("MatMul", "x w", "t")],
        [op("Neg", "x", "e")],
        after=[op("MatMul", "p w", "y")],
        constants=[WEIGHT],
    )
    assert find_kept_layers(KeepNestedLayerRule(), proto) == {"t": "it lies inside If 'p'"}


def test_layers_of_loops_are_kept() -> None:
    proto = loop_model([op("MatMul", "s w", "s_next")], [WEIGHT])
    assert find_kept_layers(KeepNestedLayerRule(), proto) == {
        "s_next": "it lies inside Loop 'repeat'"
    }
