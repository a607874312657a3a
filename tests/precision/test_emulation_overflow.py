"""Overflow that ONNX Runtime hides and a device shows: no false pass from emulation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, ModelProto, numpy_helper

from tests.builders import (
    FLOAT,
    FLOAT16,
    INT64,
    constant,
    count_ops,
    in_memory,
    loaded,
    model,
    op,
    random_array,
    value,
)
from tests.precision.emulated_runs import Array, emulate, emulate_and_run, run_emulated
from tests.precision.typed_models import relative_error, run_ort, run_reference
from trtdeploy.config.recipe import RECIPES
from trtdeploy.precision.emulation import emulate_model
from trtdeploy.precision.typed_model import apply_recipe
from trtdeploy.precision.typing_options import TypingOptions

WIDTH = 32
SQUARES = [
    op("MatMul", "x w_big", "h"),
    op("ReduceMean", "h", "mu", axes=[-1]),
    op("Sub", "h mu", "d"),
    op("Pow", "d two", "d2"),  # about 250000
    op("ReduceMean", "d2", "var", axes=[-1]),
    op("Add", "var eps", "ve"),
    op("Sqrt", "ve", "sd"),
    op("Div", "d sd", "n"),
    op("MatMul", "n w_o", "y"),
]
NORM = [
    op("MatMul", "x w_big", "h"),
    op("ReduceL2", "h", "l2", axes=[-1]),
    op("Div", "h l2", "n"),
    op("MatMul", "n w_o", "y"),
]


def make_norm(nodes: list[onnx.NodeProto]) -> ModelProto:
    """A norm written out by hand over activations of a few hundred."""
    constants = [
        constant("w_big", random_array(WIDTH, WIDTH, scale=90)),
        constant("w_o", random_array(WIDTH, 8, seed=1, scale=0.3)),
        constant("two", 2),
        constant("eps", 1e-5),
    ]
    read = {name for node in nodes for name in node.input}
    return model(
        nodes,
        [value("x", ("N", WIDTH))],
        [value("y", ("N", 8))],
        [tensor for tensor in constants if tensor.name in read],
    )


def halve_everything(source: ModelProto) -> ModelProto:
    """Make every FP32 type of a model FP16, as a naive converter does."""
    proto = ModelProto()
    proto.CopyFrom(source)
    for tensor in proto.graph.initializer:
        if tensor.data_type == FLOAT:
            with np.errstate(over="ignore"):
                values = numpy_helper.to_array(tensor).astype(np.float16)
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    for node in proto.graph.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.INT and node.op_type == "Cast":
                attribute.i = FLOAT16
    for declared in (*proto.graph.input, *proto.graph.output):
        if declared.type.tensor_type.elem_type == FLOAT:
            declared.type.tensor_type.elem_type = FLOAT16
    return proto


def halve_feeds(feeds: dict[str, Array]) -> dict[str, Array]:
    return {n: v.astype(np.float16) if v.dtype == np.float32 else v for n, v in feeds.items()}


@pytest.mark.parametrize("nodes", [SQUARES, NORM], ids=["layer_norm", "l2_norm"])
def test_squares_overflow_in_a_naive_fp16_file(nodes: list[onnx.NodeProto], tmp_path: Path) -> None:
    source = make_norm(nodes)
    naive = halve_everything(source)
    feeds = {"x": random_array(4, WIDTH, seed=2)}
    baseline = run_ort(source, feeds)[0]
    hidden = run_ort(naive, halve_feeds(feeds))[0]
    assert relative_error(hidden, baseline) < 0.01, "ONNX Runtime computes FP16 in FP32"
    found = emulate_and_run(naive, halve_feeds(feeds), tmp_path)[0]
    assert relative_error(found, baseline) > 0.5
    assert not found.any(), "a division by infinity"
    np.testing.assert_array_equal(found, run_reference(naive, halve_feeds(feeds))[0])


@pytest.mark.parametrize("recipe", ["fp16", "bf16"])
@pytest.mark.parametrize("nodes", [SQUARES, NORM], ids=["layer_norm", "l2_norm"])
def test_the_recipe_keeps_the_same_norm_right(
    nodes: list[onnx.NodeProto], recipe: str, tmp_path: Path
) -> None:
    source = make_norm(nodes)
    feeds = {"x": random_array(4, WIDTH, seed=2)}
    typed = apply_recipe(loaded(source, tmp_path), TypingOptions(RECIPES[recipe])).model
    found = run_emulated(emulate(typed, tmp_path), feeds)[0]
    error = relative_error(found, run_ort(source, feeds)[0])
    assert 0 < error < (0.003 if recipe == "fp16" else 0.02)


@pytest.mark.parametrize("op_type", ["ReduceSumSquare", "ReduceL2", "ReduceLogSum"])
@pytest.mark.parametrize("opset", [11, 13, 18])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_reductions_of_several_layers_are_rounded_in_between(
    op_type: str, opset: int, keepdims: int, tmp_path: Path
) -> None:
    axes = [constant("axes", [1], np.int64)] if opset >= 18 else []
    options = {} if axes else {"axes": [1]}
    proto = model(
        [op(op_type, "x axes" if axes else "x", "y", keepdims=keepdims, **options)],
        [value("x", ("N", 4), FLOAT16)],
        [value("y", ("N", 1) if keepdims else ("N",), FLOAT16)],
        axes,
        opset=opset,
    )
    x = np.array([[0.1, 0.2, 0.3, 1.7], [255, 256, 3, 4], [6e4, 6e4, 1, 1]], np.float16)
    found = emulate_and_run(proto, {"x": x}, tmp_path)[0]
    np.testing.assert_array_equal(found, run_reference(proto, {"x": x})[0])
    assert np.isinf(found[2:]).all()


def test_a_reduction_that_does_nothing_stays(tmp_path: Path) -> None:
    nodes = [op("ReduceL2", "x", "y", noop_with_empty_axes=1)]
    proto = model(nodes, [value("x", None, FLOAT16)], [value("y", None, FLOAT16)], opset=18)
    assert count_ops(emulate_model(in_memory(proto)).proto, "ReduceL2") == 1


@pytest.mark.parametrize(("op_type", "count"), [("Sum", 1), ("Sum", 2), ("Sum", 4), ("Mean", 3)])
def test_sums_of_tensors_overflow_on_the_way(op_type: str, count: int, tmp_path: Path) -> None:
    names = [f"x{i}" for i in range(count)]
    proto = model(
        [op(op_type, " ".join(names), "y")],
        [value(name, (1, 3), FLOAT16) for name in names],
        [value("y", (1, 3), FLOAT16)],
    )
    feeds = {
        n: np.array([[0.1, 6e4, 300]], np.float16) * (-1) ** (i // 2) for i, n in enumerate(names)
    }
    found = emulate_and_run(proto, feeds, tmp_path)[0]
    assert np.isinf(found[0, 1]) == (count > 1)
    if op_type == "Sum":
        np.testing.assert_array_equal(found, run_reference(proto, feeds)[0])
    else:
        np.testing.assert_allclose(found[0, ::2], [0.1 / 3, 100], rtol=2.0**-9)


def masked_attention() -> ModelProto:
    """Attention whose mask is 0 or -1e12, and a weight of 9e4 behind a scale of 1e-3."""
    weight = random_array(16, 16, seed=3, scale=0.3)
    weight[0, 0] = 9e4
    return model(
        [
            op("MatMul", "x wq", "q"),
            op("MatMul", "x wk", "k"),
            op("Transpose", "k", "kt", perm=[0, 2, 1]),
            op("MatMul", "q kt", "s0"),
            op("Mul", "s0 scale", "s1"),
            op("Cast", "mask", "mf", to=FLOAT),
            op("Sub", "one mf", "inverse"),
            op("Mul", "inverse neg_big", "bias"),  # 0 * -inf once the constant is halved
            op("Unsqueeze", "bias axis", "bias3"),
            op("Add", "s1 bias3", "s2"),
            op("Softmax", "s2", "p", axis=-1),
            op("MatMul", "p x", "context"),
            op("Min", "context bound", "c"),
            op("Mul", "c tiny", "t"),
            op("MatMul", "t ws", "y"),
        ],
        [value("x", ("B", "S", 16)), value("mask", ("B", "S"), INT64)],
        [value("y", ("B", "S", 16))],
        [
            constant("wq", random_array(16, 16, seed=1, scale=0.25)),
            constant("wk", random_array(16, 16, seed=2, scale=0.25)),
            constant("ws", weight),
            constant("scale", 0.25),
            constant("one", 1),
            constant("neg_big", -1e12),
            constant("bound", np.inf),
            constant("tiny", 1e-3),
            constant("axis", [1], np.int64),
        ],
    )


def attention_feeds() -> dict[str, Array]:
    mask = np.ones((3, 6), np.int64)
    mask[1, 4:] = 0  # partly masked; row 0 is not, row 2 is fully
    mask[2] = 0
    return {"x": random_array(3, 6, 16), "mask": mask}


def test_a_halved_mask_makes_every_row_nan(tmp_path: Path) -> None:
    naive = halve_everything(masked_attention())
    assert np.isnan(emulate_and_run(naive, halve_feeds(attention_feeds()), tmp_path)[0]).all()


@pytest.mark.parametrize("recipe", ["fp16", "bf16"])
def test_the_recipe_gets_all_three_rows_of_the_mask_right(recipe: str, tmp_path: Path) -> None:
    source, feeds = masked_attention(), attention_feeds()
    typed = apply_recipe(loaded(source, tmp_path), TypingOptions(RECIPES[recipe])).model
    found = run_emulated(emulate(typed, tmp_path), feeds)[0]
    baseline = run_ort(source, feeds)[0]
    for row in range(3):
        error = relative_error(found[row], baseline[row])
        assert 0 < error < (0.01 if recipe == "fp16" else 0.1)
