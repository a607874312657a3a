from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, NodeProto, helper

from tests.builders import chain, in_memory, model, op, random_array, value
from trtdeploy.core.errors import ModelFileError
from trtdeploy.graph.passes.inline_functions import InlineFunctionsPass


def calling(body: list[NodeProto], *, function_opset: int = 17) -> ModelProto:
    """Make ``y = Local(Local(x))``."""
    proto = model(
        [op("Local", "x", "h", domain="local"), op("Local", "h", "y", domain="local")],
        [value("x")],
        [value("y")],
        domains=["local"],
    )
    opsets = [helper.make_opsetid("", function_opset), helper.make_opsetid("local", 1)]
    proto.functions.append(helper.make_function("local", "Local", ["a"], ["b"], body, opsets))
    return proto


@pytest.mark.parametrize("function_opset", [17, 15])
def test_calls_become_nodes(function_opset: int) -> None:
    body = [op("Relu", "a", "r"), op("Add", "r a", "b")]
    found = in_memory(calling(body, function_opset=function_opset))
    InlineFunctionsPass()(found)
    assert [n.op_type for n in found.graph.node] == ["Relu", "Add", "Relu", "Add"]
    assert not found.proto.functions
    assert found.changes == ["1 model-local functions inlined"]
    x = random_array(2, 4)
    y = onnxruntime.InferenceSession(found.proto.SerializeToString()).run(None, {"x": x})[0]
    once = np.maximum(x, 0) + x
    assert np.allclose(y, np.maximum(once, 0) + once)


def test_a_function_that_calls_itself_is_refused() -> None:
    found = in_memory(calling([op("Local", "a", "b", domain="local")]))
    with pytest.raises(ModelFileError, match="cannot be inlined"):
        InlineFunctionsPass()(found)


def test_functions_that_double_each_other_are_refused_at_once() -> None:
    proto = calling([op("Relu", "a", "b")])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    for level in range(40):
        inner = "Local" if level == 0 else f"Local{level - 1}"
        body = [op(inner, "a", "h", domain="local"), op(inner, "h", "b", domain="local")]
        name = f"Local{level}"
        proto.functions.append(helper.make_function("local", name, ["a"], ["b"], body, opsets))
    proto.graph.node[0].op_type = "Local39"
    with pytest.raises(ModelFileError, match="more than 262144 nodes"):
        InlineFunctionsPass()(in_memory(proto))


def test_a_model_without_functions_is_left_alone() -> None:
    found = in_memory(chain(["Relu"]))
    InlineFunctionsPass()(found)
    assert not found.changes
