"""What emulation refuses rather than pass unseen."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, ModelProto, TensorProto, helper, numpy_helper

from tests.builders import (
    FLOAT,
    FLOAT16,
    branch_model,
    chain,
    constant,
    count_ops,
    find_node,
    in_memory,
    loop_model,
    op,
    random_array,
    value,
)
from tests.precision.emulated_runs import (
    between_casts,
    emulate_and_run,
)
from trtdeploy.core.errors import NotPossibleError
from trtdeploy.precision.emulation import emulate_model


def sequence_model(at: bool) -> ModelProto:
    ends = [op("SequenceAt", "s nought", "b")] if at else []
    nodes = [op("SequenceConstruct", "a a", "s"), *ends]
    return between_casts(nodes, FLOAT16, constants=[constant("nought", 0, np.int64)])


def test_sequences_inside_the_model_are_emulated(tmp_path: Path) -> None:
    x = random_array(4, 4)
    found = emulate_and_run(sequence_model(at=True), {"x": x}, tmp_path)[0]
    np.testing.assert_array_equal(found, x.astype(np.float16).astype(np.float32))


def narrow_sequence_output() -> ModelProto:
    proto = sequence_model(at=False)
    del proto.graph.node[-1], proto.graph.output[:]
    tensor = helper.make_tensor_type_proto(FLOAT16, None)
    kind = helper.make_sequence_type_proto(tensor)
    proto.graph.output.append(helper.make_value_info("s", kind))
    return proto


def unknown_operator() -> ModelProto:
    nodes = [op("FancyWarp", "a", "b", "warp", domain="com.acme")]
    return between_casts(nodes, FLOAT16)


def bit_cast() -> ModelProto:
    nodes = [op("BitCast", "a", "bits", to=TensorProto.INT16), op("Cast", "bits", "b", to=FLOAT16)]
    return between_casts(nodes, FLOAT16, opset=26)


def branching() -> ModelProto:
    branch = [op("Cast", "x", "t", to=FLOAT16)]
    proto = branch_model(
        branch, [op("Cast", "x", "e", to=FLOAT16)], after=[op("Cast", "p", "y", to=FLOAT)]
    )
    for attribute in find_node(proto, "p").attribute:
        attribute.g.output[0].type.tensor_type.elem_type = FLOAT16
    return proto


def looping() -> ModelProto:
    proto = loop_model([op("Mul", "s s", "s_next")], [])
    loop = find_node(proto, "repeat")
    loop.input[2], loop.output[0] = "low", "p"
    body = next(a.g for a in loop.attribute if a.name == "body")
    for state in (body.input[2], body.output[1]):
        state.type.tensor_type.elem_type = FLOAT16
    proto.graph.node.insert(0, op("Cast", "x", "low", to=FLOAT16))
    proto.graph.node.append(op("Cast", "p", "y", to=FLOAT))
    return proto


@pytest.mark.parametrize(
    ("proto", "message"),
    [
        (narrow_sequence_output(), "'s' holds several"),
        (unknown_operator(), r"'warp' \(FancyWarp\) makes 'b', which may be a 16-bit float"),
        (bit_cast(), "BitCast 'bits' reads the bits"),
    ],
    ids=["sequence", "unknown", "bits"],
)
def test_what_cannot_be_emulated_is_refused(proto: ModelProto, message: str) -> None:
    with pytest.raises(NotPossibleError, match=message):
        emulate_model(in_memory(proto))


def test_failed_type_inference_is_no_silent_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx.shape_inference, "infer_shapes", lambda proto: proto)
    with pytest.raises(NotPossibleError, match=r"'a' \(Cast\) makes 'a'"):
        emulate_model(in_memory(between_casts([op("Mul", "a a", "b")], FLOAT16)))
    tenth = numpy_helper.from_array(np.array([0.1], np.float16))
    filled = chain(["Shape", "ConstantOfShape", "Neg"])
    filled.graph.node[1].attribute.add(name="value", type=AttributeProto.TENSOR, t=tenth)
    with pytest.raises(NotPossibleError, match="ConstantOfShape"):
        emulate_model(in_memory(filled))


@pytest.mark.parametrize("proto", [branching(), looping()], ids=["If", "Loop"])
def test_a_body_may_not_hide_a_narrow_result(
    proto: ModelProto, monkeypatch: pytest.MonkeyPatch
) -> None:
    infer = onnx.shape_inference.infer_shapes

    def forget_results(given: ModelProto) -> ModelProto:
        inferred = infer(given)
        kept = [v for v in inferred.graph.value_info if v.name != "p"]
        del inferred.graph.value_info[:]
        inferred.graph.value_info.extend(kept)
        return inferred

    emulate_model(in_memory(proto))
    monkeypatch.setattr(onnx.shape_inference, "infer_shapes", forget_results)
    with pytest.raises(NotPossibleError, match="makes 'p', which may be a 16-bit float"):
        emulate_model(in_memory(proto))


def test_an_unknown_operator_in_fp32_is_no_obstacle() -> None:
    proto = between_casts([op("Neg", "a", "b")], FLOAT16)
    proto.graph.node.append(op("FancyWarp", "y", "z", domain="com.acme"))
    proto.graph.output.append(value("z"))
    assert count_ops(emulate_model(in_memory(proto)).proto, "FancyWarp") == 1
