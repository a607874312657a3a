from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, helper

from tests.builders import INT64, constant, in_memory, model, op, random_array, value
from trtdeploy.core.errors import ModelFileError
from trtdeploy.graph.normalization import normalize_model


def untidy() -> ModelProto:
    """All disorder at once: unsorted, unnamed, functions, Constants, weights as inputs."""
    proto = model(
        [
            op("Add", "h w", "y", ""),
            op("Gelu", "x", "h", "", domain="local"),
            op("Constant", "", "unused", "", value_float=1.0),
        ],
        [value("x", ("?", 4)), value("w", [4])],
        [value("y", ("?", 4))],
        [constant("w", random_array(4))],
        domains=["local"],
    )
    body = [op("Sigmoid", "a", "s"), op("Mul", "a s", "b")]
    opsets = [helper.make_opsetid("", 17)]
    proto.functions.append(helper.make_function("local", "Gelu", ["a"], ["b"], body, opsets))
    proto.ir_version = 8
    return proto


def test_a_normal_model_computes_the_same() -> None:
    proto = untidy()
    tidy = normalize_model(in_memory(proto)).proto
    onnx.checker.check_model(tidy, full_check=True)
    feeds = {"x": random_array(3, 4)}
    session = onnxruntime.InferenceSession(tidy.SerializeToString())
    hidden = feeds["x"] / (1 + np.exp(-feeds["x"]))
    assert np.allclose(session.run(None, feeds)[0], hidden + random_array(4), atol=1e-6)
    names = [node.name for node in tidy.graph.node]
    assert [node.op_type for node in tidy.graph.node] == ["Sigmoid", "Mul", "Add"]
    assert all(names)
    assert len(set(names)) == len(names)
    assert [v.name for v in tidy.graph.input] == ["x"]


def test_the_given_model_stays_as_it_was() -> None:
    found = in_memory(untidy())
    before = found.proto.SerializeToString(deterministic=True)
    normalize_model(found)
    assert found.proto.SerializeToString(deterministic=True) == before
    assert not found.changes


def test_changes_that_a_user_should_know_are_told() -> None:
    changes = normalize_model(in_memory(untidy())).changes
    assert any("functions inlined" in change for change in changes)
    assert any("listed as inputs" in change for change in changes)


def test_a_broken_node_is_refused() -> None:
    proto = model([op("MatMul", "x", "y", "broken")], [value("x"), value("n", (), INT64)], [])
    with pytest.raises(ModelFileError, match="'broken'"):
        normalize_model(in_memory(proto))
