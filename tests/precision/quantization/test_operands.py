"""Which operands get Q/DQ pairs around the structures of real networks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto

from tests.builders import branch_model, constant, model, op, random_array, value
from tests.precision.quantized_models import (
    DQ,
    compile_for_rtx,
    conv,
    conv_weight,
    dequantized_slots,
    image_feeds,
    image_model,
    make_plan,
    pair_of,
    quantize,
    scale_of,
)

W = conv_weight("w", 16, 16)


def edges(proto: ModelProto, recipe: str = "int8") -> dict[str, list[int]]:
    """Return the slots that each node reads through pairs, weights left out."""
    plan, _ = make_plan(proto, recipe)
    found: dict[str, list[int]] = {}
    for operand in plan.operands:
        found.setdefault(operand.node, []).append(operand.slot)
    return found


def groups(proto: ModelProto, recipe: str = "int8") -> dict[str, str]:
    plan, _ = make_plan(proto, recipe)
    return {operand.node: operand.group for operand in plan.operands}


def test_nothing_stands_between_a_layer_and_its_activation(tmp_path: Path) -> None:
    nodes = [
        conv("x w", "c"), op("Sigmoid", "c", "s"), op("Mul", "c s", "swish"),
        conv("swish w", "d"), op("HardSwish", "d", "h"), conv("h w", "e"), op("Clip", "e", "y"),
    ]  # fmt: skip
    found = quantize(image_model(nodes, [W]), tmp_path, image_feeds())
    for name in ("s", "swish", "h", "y"):
        assert not dequantized_slots(found.proto, name)
    for name in ("c", "d", "e"):
        assert dequantized_slots(found.proto, name) == [0, 1]


def test_other_readers_read_the_value_itself(tmp_path: Path) -> None:
    nodes = [op("Relu", "x", "a"), conv("a w", "c"), conv("a w", "d"), op("Exp", "a", "e")]
    nodes += [op("Sum", "c d e", "y")]
    found = quantize(image_model(nodes, [W]), tmp_path, image_feeds())
    exp = next(node for node in found.proto.graph.node if node.name == "e")
    assert list(exp.input) == ["a"]
    assert pair_of(found.proto, "c").name == pair_of(found.proto, "d").name == "a_dequantize"


CARRIED = [
    op("MaxPool", "a", "m", "moved", kernel_shape=[2, 2], strides=[2, 2]),
    op("Transpose", "a", "m", "moved", perm=[0, 1, 3, 2]),
    op("Reshape", "a shape", "m", "moved"),
    op("Identity", "a", "m", "moved"),
    op("Slice", "a zeros fours", "m", "moved"),
    op("Resize", "a - scales", "m", "moved", mode="nearest"),
    op("DepthToSpace", "a", "m", "moved", blocksize=1),
    op("Gather", "a first", "m", "moved", axis=2),
]
NOT_CARRIED = [
    op("AveragePool", "a", "m", "moved", kernel_shape=[2, 2]),
    op("Resize", "a - scales", "m", "moved", mode="linear"),
    op("Relu", "a", "m", "moved"),
]
EXTRA = [
    constant("shape", [-1, 16, 4, 16], np.int64),
    constant("zeros", [0, 0, 0, 0], np.int64),
    constant("fours", [9, 16, 4, 4], np.int64),
    constant("scales", [1, 1, 2, 2]),
    constant("first", [0, 1, 2], np.int64),
]


def moved_model(move: NodeProto, *more: NodeProto) -> ModelProto:
    nodes = [op("Relu", "x", "a"), move, conv("m w", "y", "reader"), *more]
    return image_model(nodes, [W, *EXTRA], more[-1].output[0] if more else "y")


@pytest.mark.parametrize("move", CARRIED, ids=lambda node: node.op_type)
def test_moves_are_carried_with_one_scale(move: NodeProto) -> None:
    plan, _ = make_plan(moved_model(move))
    if move.op_type == "Identity":  # normalisation removes it
        assert plan.measured == ("a",)
        return
    assert [(o.node, o.tensor, o.group) for o in plan.operands] == [
        ("moved", "a", "a"),
        ("reader", "m", "a"),
    ]
    assert plan.measured == ("a",)


@pytest.mark.parametrize("move", NOT_CARRIED, ids=lambda node: node.op_type)
def test_what_computes_is_not_carried(move: NodeProto) -> None:
    plan, _ = make_plan(moved_model(move))
    assert [(o.node, o.tensor, o.group) for o in plan.operands] == [("reader", "m", "m")]
    assert plan.measured == ("m",)


@pytest.mark.parametrize(("move", "root"), [(CARRIED[1], "a"), (CARRIED[4], "m")])
def test_a_move_that_somebody_reads_in_full_is_not_carried(move: NodeProto, root: str) -> None:
    """Its reader would see rounded values. A rearrangement is still measured on its source."""
    plan, _ = make_plan(moved_model(move, op("Exp", "m", "z")))
    assert [(o.node, o.tensor, o.group) for o in plan.operands] == [("reader", "m", root)]


def test_a_move_whose_result_is_an_output_is_not_carried() -> None:
    proto = moved_model(CARRIED[1])
    proto.graph.output.append(value("m", ("N", 16, 8, 8)))
    assert edges(proto) == {"reader": [0]}


def test_nested_readers_read_in_full() -> None:
    nodes = [op("Transpose", "x", "m", "moved"), op("MatMul", "m w", "y0", "reader")]
    proto = branch_model(
        [op("Neg", "m", "t")], [op("Exp", "m", "e")], before=nodes, after=[op("Add", "p y0", "y")],
        constants=[constant("w", np.eye(4))],
    )  # fmt: skip
    assert edges(proto) == {"reader": [0]}


def spatial_pyramid() -> ModelProto:
    """Three poolings of one value, joined with it: SPPF of a YOLO."""
    pool = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    nodes = [
        conv("x w", "c"), op("Relu", "c", "r"),
        op("MaxPool", "r", "p1", **pool), op("MaxPool", "p1", "p2", **pool),
        op("Concat", "r p1 p2", "j", axis=1), conv("j w3", "y"),
    ]  # fmt: skip
    return image_model(nodes, [W, conv_weight("w3", 16, 48)])


def test_a_pyramid_of_poolings_has_one_scale(tmp_path: Path) -> None:
    found = quantize(spatial_pyramid(), tmp_path, image_feeds())
    assert dequantized_slots(found.proto, "j") == [0, 1, 2]
    scales = {float(scale_of(found.proto, n, s)) for n, s in
              (("p1", 0), ("p2", 0), ("j", 0), ("j", 1), ("j", 2), ("y", 0))}  # fmt: skip
    assert len(scales) == 1
    assert found.plan.measured == ("x", "r", "j")
    assert compile_for_rtx(found.proto, image_feeds()) == ""


def split_block() -> ModelProto:
    """C2f of a YOLO: split in two, two convolutions on one half, everything joined."""
    nodes = [
        conv("x w", "c"), op("Relu", "c", "r"),
        op("Split", "r halves", "a b", "split", axis=1),
        conv("b v", "d"), op("Relu", "d", "e"), conv("e v", "f"),
        op("Add", "b f", "g", "shortcut"), op("Concat", "a b g", "j", axis=1),
        conv("j u", "y"),
    ]  # fmt: skip
    halves = constant("halves", [8, 8], np.int64)
    weights = [W, halves, conv_weight("v", 8, 8), conv_weight("u", 16, 24)]
    return image_model(nodes, weights)


def test_a_split_block_stays_in_8_bits(tmp_path: Path) -> None:
    found = quantize(split_block(), tmp_path, image_feeds())
    assert dequantized_slots(found.proto, "split") == [0]
    assert dequantized_slots(found.proto, "shortcut") == [0]  # b; f comes from the convolution
    assert dequantized_slots(found.proto, "j") == [0, 1, 2]
    assert pair_of(found.proto, "d").name == pair_of(found.proto, "shortcut").name
    assert compile_for_rtx(found.proto, image_feeds()) == ""


def residual(skip: str, *nodes: NodeProto) -> ModelProto:
    made = [op("Exp", "x", "e"), *nodes, conv("e w", "c"), op("Add", f"c {skip}", "y", "add")]
    bias = constant("bias", random_array(1, 16, 8, 8))
    return image_model(made, [W, bias])


@pytest.mark.parametrize(
    ("proto", "slots"),
    [
        (residual("e"), [1]),
        (residual("bias"), None),
        (residual("d", conv("x w", "d")), [1]),
        (residual("d", conv("x w", "d0"), conv("d0 w", "d")), [0]),
    ],
    ids=["identity", "constant", "as deep", "the other branch is deeper"],
)
def test_residual_adds(proto: ModelProto, slots: list[int] | None) -> None:
    assert edges(proto).get("add") == slots


def test_a_convolution_that_others_read_too_is_no_residual() -> None:
    nodes = [conv("x w", "c"), op("Exp", "c", "e"), op("Add", "c x", "a", "add")]
    proto = image_model([*nodes, op("Mul", "a e", "y")], [W])
    assert "add" not in edges(proto)


def test_residuals_of_transformers_stay_in_full() -> None:
    nodes = [op("MatMul", "x w", "m"), op("Add", "m x", "y", "add")]
    proto = model(nodes, [value("x")], [value("y")], [constant("w", np.eye(4))])
    assert edges(proto) == {"m": [0]}


def attention() -> ModelProto:
    """One head of self-attention with its projections."""
    weights: list[TensorProto] = [
        constant(f"w{n}", random_array(16, 16, seed=i)) for i, n in enumerate("qkvo")
    ]
    nodes = [
        *(op("MatMul", f"x w{n}", n) for n in "qkv"),
        op("Mul", "q root", "qs"),
        op("Transpose", "k", "kt", perm=[0, 2, 1]),
        op("MatMul", "qs kt", "scores"),
        op("Softmax", "scores", "p", axis=-1),
        op("MatMul", "p v", "z"),
        op("MatMul", "z wo", "y"),
    ]
    shape = ("N", 8, 16)
    return model(
        nodes, [value("x", shape)], [value("y", shape)], [*weights, constant("root", 0.25)]
    )


def test_attention_in_fp8(tmp_path: Path) -> None:
    feeds = {"x": random_array(2, 8, 16, seed=3)}
    found = quantize(attention(), tmp_path, feeds, "fp8")
    assert edges(attention(), "fp8") == {
        "q": [0], "k": [0], "v": [0], "scores": [0, 1], "z": [0, 1], "y": [0],
    }  # fmt: skip
    assert groups(attention(), "fp8")["scores"] == "k"  # the Transpose is measured on its source
    assert not dequantized_slots(found.proto, "kt")
    assert found.typed.plan.nodes["p"].dtype.label == "float16"  # the fusion survives the pairs
    assert float(scale_of(found.proto, "z")) <= 1.001 / 448
    assert compile_for_rtx(found.proto, feeds) == ""


def test_attention_in_int8_is_left_alone() -> None:
    assert edges(attention()) == {"q": [0], "k": [0], "v": [0], "y": [0]}


def test_layers_in_bodies_are_untouched(tmp_path: Path) -> None:
    proto = branch_model(
        [op("MatMul", "x w", "t")],
        [op("Neg", "x", "e")],
        after=[op("MatMul", "p w", "y")],
        constants=[constant("w", np.eye(4))],
    )
    feeds = {"x": random_array(2, 4), "flag": np.array(True)}
    found = quantize(proto, tmp_path, feeds)
    branches = next(node for node in found.proto.graph.node if node.op_type == "If").attribute
    assert not any(node.op_type == DQ for branch in branches for node in branch.g.node)
    assert dequantized_slots(found.proto, "y") == [0, 1]
    assert found.plan.layers["t"].rule == "KeepNestedLayerRule"
