from __future__ import annotations

import numpy as np
import pytest

from tests.builders import INT64, UINT8, constant, model, op, value
from tests.precision.layer_rule_runs import find_kept_layers, tower
from tests.precision.quantized_models import image_model
from trtdeploy.precision.quantization.rules.first_layer import KeepFirstLayerRule


@pytest.mark.parametrize(
    ("preprocessing", "kept"),
    [
        ([], ["t0"]),
        ([op("Sub", "x mean", "a"), op("Mul", "a mean", "b")], ["t0"]),
        ([op("Transpose", "x", "b", perm=[0, 1, 3, 2])], ["t0"]),
        ([op("Softmax", "x", "b")], []),
    ],
)
def test_behind_arithmetic_and_moves(preprocessing: list[object], kept: list[str]) -> None:
    nodes, weights = tower("b" if preprocessing else "x", "y")
    mean = constant("mean", np.full((1, 16, 1, 1), 0.5))
    proto = image_model([*preprocessing, *nodes], [*weights, mean])
    assert list(find_kept_layers(KeepFirstLayerRule(), proto)) == kept


def test_off_in_small_models() -> None:
    assert not find_kept_layers(KeepFirstLayerRule(), image_model(*tower("x", "y", 9)))


def test_bytes_of_an_image_are_raw_data_too() -> None:
    nodes, weights = tower("b", "y")
    inputs = [value("x", ("N", 16, 8, 8), UINT8)]
    outputs = [value("y", ("N", "c", "h", "w"))]
    proto = model([op("Cast", "x", "b", to=1), *nodes], inputs, outputs, weights)
    assert list(find_kept_layers(KeepFirstLayerRule(), proto)) == ["t0"]


def test_embeddings_are_not_raw_data() -> None:
    nodes, weights = tower("b", "y")
    table = constant("table", np.zeros((5, 16, 8, 8)))
    inputs = [value("x", ("N",), INT64)]
    outputs = [value("y", ("N", "c", "h", "w"))]
    proto = model([op("Gather", "table x", "b"), *nodes], inputs, outputs, [*weights, table])
    assert not find_kept_layers(KeepFirstLayerRule(), proto)
