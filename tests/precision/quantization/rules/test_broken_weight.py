from __future__ import annotations

import numpy as np
import pytest

from tests.builders import constant, model, op, value
from tests.precision.layer_rule_runs import find_kept_layers
from trtdeploy.precision.quantization.rules.broken_weight import KeepBrokenWeightRule


@pytest.mark.parametrize(("number", "said"), [(np.nan, "NaN"), (-np.inf, "infinity"), (7, "")])
def test_weights_that_hold_no_number(number: float, said: str) -> None:
    weight = np.eye(4)
    weight[2, 1] = number
    proto = model([op("MatMul", "x w", "y")], [value("x")], [value("y")], [constant("w", weight)])
    kept = find_kept_layers(KeepBrokenWeightRule(), proto)
    assert kept == ({"y": f"its weight 'w' holds {said}"} if said else {})
