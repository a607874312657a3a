from __future__ import annotations

import numpy as np

from tests.builders import FLOAT, INT64, chain, constant, model, op, value
from tests.precision.rule_runs import find_kept
from trtdeploy.precision.rules.shape_arithmetic import KeepShapeArithmeticRule


def test_float_numbers_that_become_sizes_are_kept() -> None:
    proto = model(
        [
            op("Shape", "x", "s"),
            op("Cast", "s", "s_f", to=FLOAT),
            op("Mul", "s_f half", "h_f"),
            op("Cast", "h_f", "h", to=INT64),
            op("Resize", "x - - h", "r", mode="nearest"),
            op("Mul", "r half", "y"),
        ],
        [value("x", ("N", 4))],
        [value("y", None)],
        [constant("half", [1, 0.5])],
    )
    kept = find_kept(KeepShapeArithmeticRule(), proto)
    assert kept.keys() == {"s_f", "h_f", "h"}
    assert kept["h_f"] == "Mul computes a shape"


def test_arithmetic_on_data_is_free() -> None:
    proto = model(
        [op("Mul", "x x", "h"), op("Reshape", "h s", "y")],
        [value("x")],
        [value("y", None)],
        [constant("s", [-1], np.int64)],
    )
    assert not find_kept(KeepShapeArithmeticRule(), proto)
    assert not find_kept(KeepShapeArithmeticRule(), chain(["Relu", "Exp"]))
