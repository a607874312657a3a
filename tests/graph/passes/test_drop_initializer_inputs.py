from __future__ import annotations

from tests.builders import chain, constant, in_memory, model, op, value
from trtdeploy.graph.passes.drop_initializer_inputs import DropInitializerInputsPass


def test_weights_are_inputs_no_longer() -> None:
    proto = model(
        [op("Mul", "x w", "h"), op("Add", "h b", "y")],
        [value("w", [4]), value("x"), value("b", [4])],
        [value("y")],
        [constant("w", [1, 2, 3, 4]), constant("b", [0, 0, 0, 0])],
    )
    proto.ir_version = 3
    found = in_memory(proto)
    DropInitializerInputsPass()(found)
    assert [v.name for v in found.graph.input] == ["x"]
    assert found.proto.ir_version == 4
    assert found.changes == ["2 weights were listed as inputs; they are constants now"]


def test_other_models_are_left_alone() -> None:
    found = in_memory(chain(["Relu"]))
    before = found.proto.SerializeToString(deterministic=True)
    DropInitializerInputsPass()(found)
    assert found.proto.SerializeToString(deterministic=True) == before
    assert not found.changes
