from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, helper

from tests.builders import FLOAT, chain, constant, in_memory, model, op, random_array, value
from trtdeploy.core.errors import ModelFileError
from trtdeploy.graph.model import walk_nodes
from trtdeploy.graph.normalization import normalize_model
from trtdeploy.graph.passes.upgrade_opset import UpgradeOpsetPass


def old_model() -> ModelProto:
    """Opset 11 with axes as attributes, a Softmax over several axes and a Dropout."""
    return model(
        [
            op("Unsqueeze", "x", "x4", axes=[1]),
            op("Conv", "x4 w", "c", pads=[1, 1, 1, 1]),
            op("Softmax", "c", "s", axis=1),
            op("ReduceSum", "s", "r", axes=[3], keepdims=0),
            op("Dropout", "r", "d", ratio=0.5),
            op("Squeeze", "d", "y", axes=[1]),
        ],
        [value("x", ("N", 6, 5))],
        [value("y", ("N", 6))],
        [constant("w", random_array(1, 1, 3, 3))],
        opset=11,
    )


def run(proto: ModelProto) -> np.ndarray:
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    return session.run(None, {"x": random_array(2, 6, 5, seed=1)})[0]


@pytest.mark.parametrize(("opset", "ir"), [(13, 7), (19, 9), (22, 10)])
def test_results_stay_and_both_versions_rise(opset: int, ir: int) -> None:
    found = normalize_model(in_memory(old_model()))
    UpgradeOpsetPass(opset)(found)
    assert (found.opset, found.proto.ir_version) == (opset, ir)
    assert found.changes == [
        f"opset raised from 11 to {opset}",
        f"IR version raised from 6 to {ir}",
    ]
    onnx.checker.check_model(found.proto, full_check=True)
    # a few units in the last place: older ONNX Runtimes have another Softmax kernel per opset
    np.testing.assert_allclose(run(found.proto), run(old_model()), rtol=1e-6)


def test_the_model_stays_normal() -> None:
    found = normalize_model(in_memory(old_model()))
    UpgradeOpsetPass(13)(found)
    names = [node.name for node in walk_nodes(found.graph)]
    assert "Constant" not in {node.op_type for node in walk_nodes(found.graph)}
    assert all(names)
    assert len(set(names)) == len(names)


def test_a_new_enough_model_is_left_alone() -> None:
    found = in_memory(chain(["Relu"], opset=17))
    before = found.proto.SerializeToString(deterministic=True)
    UpgradeOpsetPass(13)(found)
    assert found.proto.SerializeToString(deterministic=True) == before
    assert not found.changes


def test_an_ir_version_too_low_for_the_opset_rises_alone() -> None:
    proto = chain(["Relu"], opset=17)
    proto.ir_version = 4
    found = in_memory(proto)
    UpgradeOpsetPass(13)(found)
    assert (found.opset, found.proto.ir_version) == (17, 8)
    assert found.changes == ["IR version raised from 4 to 8"]


def test_what_is_not_of_the_opset_survives() -> None:
    proto = model(
        [op("Secret", "x", "h", domain="acme"), op("Relu", "h", "y")],
        [value("x")],
        [value("y")],
        opset=11,
        domains=["acme"],
    )
    helper.set_model_props(proto, {"stride": "32"})
    proto.producer_name = "tests"
    proto.graph.value_info.append(value("h"))
    found = in_memory(proto)
    UpgradeOpsetPass(13)(found)
    assert [(o.domain, o.version) for o in found.proto.opset_import] == [("", 13), ("acme", 1)]
    assert found.proto.metadata_props[0].value == "32"
    assert found.proto.producer_name == "tests"
    assert found.graph.node[0].domain == "acme"
    assert [v.name for v in found.graph.value_info] == ["h"]


@pytest.mark.parametrize("opset", [0, -1, 3])
def test_an_opset_that_cannot_be_raised_is_an_error(opset: int) -> None:
    proto = model([op("NoSuchOperator", "x", "y")], [value("x")], [value("y")], opset=opset)
    with pytest.raises(ModelFileError, match=f"opset {opset} cannot be raised to 13") as info:
        UpgradeOpsetPass(13)(in_memory(proto))
    assert info.value.hint == "Export the model again with opset 13."


def test_a_node_that_would_crash_onnx_is_carried_over() -> None:
    proto = model(
        [
            op("Secret", "x", "u", domain="acme"),
            op("EyeLike", "u", "e", dtype=FLOAT),
            op("Softmax", "x", "s", axis=0),
            op("Add", "s e", "y"),
        ],
        [value("x", (4, 4))],
        [value("y", (4, 4))],
        opset=11,
        domains=["acme"],
    )
    found = in_memory(proto)
    UpgradeOpsetPass(22)(found)
    assert [o.domain for o in found.proto.opset_import] == ["", "acme"]
    assert {node.op_type: node.domain for node in found.graph.node}["EyeLike"] == ""
    assert found.opset == 22


def test_an_opset_that_onnx_does_not_know_is_refused_in_plain_words() -> None:
    with pytest.raises(ModelFileError, match="knows opsets up to") as caught:
        UpgradeOpsetPass(99)(in_memory(old_model()))
    assert "Assert" not in caught.value.message
