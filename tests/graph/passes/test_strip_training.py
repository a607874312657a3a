from __future__ import annotations

import numpy as np
import pytest

from tests.builders import BOOL, constant, in_memory, model, op, value
from trtdeploy.core.errors import ModelFileError
from trtdeploy.graph.passes.strip_training import StripTrainingPass

CONSTANTS = [
    *(constant(name, np.ones(3)) for name in ("scale", "bias", "mean", "var")),
    constant("ratio", 0.5),
    constant("train", True, np.bool_),
]
IMAGE = value("x", ("N", 3, 4, 4))
NORMALIZE = op("BatchNormalization", "x scale bias mean var", "n mean2 var2", training_mode=1)


def test_statistics_are_the_trained_ones_and_nothing_is_dropped() -> None:
    nodes = [NORMALIZE, op("Dropout", "n ratio train", "d"), op("Relu", "d", "y")]
    found = in_memory(model(nodes, [IMAGE], [value("y", None)], CONSTANTS))
    StripTrainingPass()(found)
    assert [node.op_type for node in found.graph.node] == ["BatchNormalization", "Relu"]
    normalization, relu = found.graph.node
    assert list(normalization.output) == ["n"]
    assert not normalization.attribute
    assert list(relu.input) == ["n"]
    assert len(found.changes) == 2


@pytest.mark.parametrize(
    ("nodes", "name"),
    [
        ([NORMALIZE, op("Add", "mean2 var2", "y")], "mean2"),
        ([op("Dropout", "x ratio train", "d mask"), op("Not", "mask", "y")], "mask"),
    ],
)
def test_what_only_training_computes_must_not_be_read(nodes: list[object], name: str) -> None:
    found = in_memory(model(nodes, [IMAGE], [value("y", None, BOOL)], CONSTANTS))  # type: ignore[arg-type]
    with pytest.raises(ModelFileError, match=repr(name)):
        StripTrainingPass()(found)


def test_inference_form_stays_as_it_is() -> None:
    nodes = [op("BatchNormalization", "x scale bias mean var", "y", epsilon=0.125)]
    found = in_memory(model(nodes, [IMAGE], [value("y", None)], CONSTANTS))
    before = found.proto.SerializeToString()
    StripTrainingPass()(found)
    assert found.proto.SerializeToString() == before
