from __future__ import annotations

import numpy as np

from tests.builders import FLOAT, INT64, constant, model, op, value
from tests.precision.rule_runs import find_kept
from trtdeploy.precision.rules.position import KeepPositionRule

FREQUENCIES = constant("f", [[1.0, 0.1, 0.01, 0.001]])


def test_rotary_angles_made_of_positions_are_kept() -> None:
    proto = model(
        [
            op("Cast", "positions", "p", to=FLOAT),
            op("Unsqueeze", "p axis", "column"),
            op("MatMul", "column f", "angles"),
            op("Concat", "angles angles", "both", axis=-1),
            op("Cos", "both", "cosine"),
            op("Sin", "both", "sine"),
            op("Add", "cosine sine", "mixed"),
            op("Relu", "mixed", "y"),
        ],
        [value("positions", ("S",), INT64)],
        [value("y", ("S", 8))],
        [FREQUENCIES, constant("axis", [1], np.int64)],
    )
    kept = find_kept(KeepPositionRule(), proto)
    assert kept.keys() == {"p", "column", "angles", "both", "cosine", "sine"}
    assert kept["angles"] == "it computes the angle of 'cosine'"


def test_a_sine_of_activations_is_kept_without_the_layers_before_it() -> None:
    proto = model(
        [op("MatMul", "x w", "h"), op("Relu", "h", "r"), op("Sin", "r", "s"), op("Neg", "s", "y")],
        [value("x")],
        [value("y")],
        [constant("w", np.eye(4))],
    )
    assert find_kept(KeepPositionRule(), proto).keys() == {"s"}


def test_without_trigonometry_nothing_is_kept() -> None:
    proto = model(
        [op("Cast", "n", "p", to=FLOAT), op("Mul", "p f", "y")],
        [value("n", (1,), INT64)],
        [value("y", (1, 4))],
        [FREQUENCIES],
    )
    assert not find_kept(KeepPositionRule(), proto)


def test_a_long_way_back_ends_the_search() -> None:
    nodes = [op("Mul", f"a{i} f", f"a{i + 1}") for i in range(40)]
    nodes = [op("Cast", "n", "a0", to=FLOAT), *nodes, op("Sin", "a40", "y")]
    proto = model(nodes, [value("n", (1,), INT64)], [value("y", (1, 4))], [FREQUENCIES])
    assert find_kept(KeepPositionRule(), proto).keys() == {"y"}
