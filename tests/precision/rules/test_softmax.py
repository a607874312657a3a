from __future__ import annotations

import pytest
from onnx import NodeProto

from tests.builders import FLOAT, branch_model, constant, model, op, value
from tests.precision.rule_runs import find_kept
from trtdeploy.precision.rules.softmax import KeepSoftmaxRule


def kept_of(*after: NodeProto, result: str = "y") -> set[str]:
    nodes = [op("MatMul", "q k", "s"), op("Softmax", "s", "p", axis=-1), *after]
    inputs = [value(name, (2, 4, 4)) for name in "qkv"]
    proto = model(nodes, inputs, [value(result, None)], [constant("one", 1.0)])
    return set(find_kept(KeepSoftmaxRule(), proto))


def test_attention_weights_are_free() -> None:
    assert not kept_of(op("MatMul", "p v", "y"))


def test_attention_weights_behind_dropout_and_casts_are_free() -> None:
    assert not kept_of(
        op("Dropout", "p", "d"),
        op("Cast", "d", "c", to=FLOAT),
        op("IsNaN", "c", "bad"),
        op("Where", "bad c c", "w"),
        op("MatMul", "w v", "y"),
    )


def test_attention_weights_in_8_bits_are_free() -> None:
    pair = [op("QuantizeLinear", "p one", "c"), op("DequantizeLinear", "c one", "d")]
    assert not kept_of(*pair, op("MatMul", "d v", "y"))


@pytest.mark.parametrize(
    ("after", "result"),
    [
        ([], "p"),
        ([op("MatMul", "p v", "z")], "p"),
        ([op("Log", "p", "y")], "y"),
        ([op("MatMul", "p v", "m"), op("Mul", "p v", "y")], "y"),
        ([op("Dropout", "p", "y")], "y"),
        ([op("Identity", "p", "i"), op("ReduceMax", "i", "y")], "y"),
    ],
    ids=["result", "result_and_weight", "log", "weight_and_more", "dropout_result", "maximum"],
)
def test_probabilities_are_kept(after: list[NodeProto], result: str) -> None:
    assert kept_of(*after, result=result) == {"p"}


@pytest.mark.parametrize("op_type", ["LogSoftmax", "Hardmax"])
def test_relatives_of_softmax_are_kept(op_type: str) -> None:
    proto = model([op(op_type, "x", "y")], [value("x")], [value("y")])
    kept = find_kept(KeepSoftmaxRule(), proto)
    assert kept == {"y": f"{op_type} sums exponentials over many values"}


def test_the_result_of_a_branch_is_no_attention_weight() -> None:
    proto = branch_model([op("Softmax", "x", "t")], [op("Relu", "x", "e")])
    assert find_kept(KeepSoftmaxRule(), proto).keys() == {"t"}


def test_a_product_inside_a_branch_counts() -> None:
    proto = branch_model(
        [op("MatMul", "p x", "t")], [op("MatMul", "x p", "e")], before=[op("Softmax", "x", "p")]
    )
    assert not find_kept(KeepSoftmaxRule(), proto)
