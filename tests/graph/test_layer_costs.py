"""Cost of layers: known networks' figures, each formula, and sizes that nobody knows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

from tests.builders import (
    FLOAT16,
    INT64,
    branch_model,
    constant,
    in_memory,
    loaded,
    model,
    op,
    random_array,
    value,
)
from trtdeploy.graph.layer_costs import LayerCost, measure_layer_costs
from trtdeploy.graph.size_inference import infer_sizes


def one_layer(
    op_type: str, data: tuple[int, ...], weight: tuple[int, ...], **attributes: Any
) -> ModelProto:
    nodes = [op(op_type, "x w", "y", "layer", **attributes)]
    return model(nodes, [value("x", data)], [value("y", None)], [constant("w", np.ones(weight))])


@pytest.mark.parametrize(
    ("proto", "flops", "weight_bytes", "activation_bytes"),
    [
        # counted by hand: 2 x outputs x inputs of one output
        (one_layer("Conv", (1, 4, 8, 8), (6, 4, 3, 3)), 2 * 6 * 36 * 36, 864, 4 * (256 + 216)),
        (one_layer("Conv", (1, 4, 8, 8), (4, 1, 3, 3), group=4), 2 * 4 * 36 * 9, 144,
         4 * (256 + 144)),
        (one_layer("ConvTranspose", (1, 4, 8, 8), (4, 6, 2, 2), strides=[2, 2]),
         2 * 4 * 64 * 24, 384, 4 * (256 + 6 * 256)),
        (one_layer("Gemm", (3, 8), (8, 5)), 2 * 3 * 8 * 5, 160, 4 * (24 + 15)),
        (one_layer("Gemm", (8, 3), (5, 8), transA=1, transB=1), 2 * 3 * 8 * 5, 160, 4 * (24 + 15)),
        (one_layer("MatMul", (2, 3, 8), (8, 5)), 2 * 2 * 3 * 8 * 5, 160, 4 * (48 + 30)),
        (one_layer("MatMul", (8,), (8, 5)), 2 * 8 * 5, 160, 4 * (8 + 5)),
    ],
)  # fmt: skip
def test_each_operator(
    proto: ModelProto, flops: int, weight_bytes: int, activation_bytes: int
) -> None:
    costs = measure_layer_costs(in_memory(proto), {})
    assert costs == {"layer": LayerCost(flops, weight_bytes, activation_bytes)}


def test_quantized_weight_costs_what_the_layer_reads(tmp_path: Any) -> None:
    nodes = [
        op("DequantizeLinear", "wq s", "w", "w_dq"),
        op("MatMul", "x w", "y", "layer"),
    ]
    constants = [constant("wq", np.ones((64, 128)), np.int8), constant("s", 0.1, np.float16)]
    proto = model(
        nodes, [value("x", ("N", 64), FLOAT16)], [value("y", None, FLOAT16)], constants, opset=19
    )
    costs = measure_layer_costs(loaded(proto, tmp_path), {"x": (2, 64)})
    assert costs["layer"] == LayerCost(2 * 2 * 64 * 128, 2 * 64 * 128, 2 * (2 * 64 + 2 * 128))


def test_unknown_sizes_are_counted_as_such() -> None:
    proto = model(
        [op("MatMul", "x w", "y", "layer"), op("Secret", "y", "z", domain="acme"),
         op("MatMul", "z w", "u", "behind")],
        [value("x", ("N", 4))], [value("u", None)], [constant("w", np.ones((4, 4)))],
        domains=("acme",),
    )  # fmt: skip
    assert measure_layer_costs(in_memory(proto), {}) == {"layer": None, "behind": None}
    known = measure_layer_costs(in_memory(proto), {"x": (3, 4)})
    assert known["layer"] == LayerCost(96, 64, 96)
    assert known["behind"] is None


def test_broken_graphs_do_not_raise() -> None:
    proto = model(
        [op("MatMul", "x ghost", "y", "one"), op("Conv", "y w", "z", "two")],
        [value("x", ("N", 4))], [value("z", None)], [constant("w", np.ones(()))],
    )  # fmt: skip
    assert measure_layer_costs(in_memory(proto), {"x": (-5, 4)}) == {"one": None, "two": None}


def test_layers_in_branches() -> None:
    proto = branch_model(
        [op("MatMul", "x w", "t", "inside")], [op("Neg", "x", "e")],
        constants=[constant("w", np.ones((4, 4)))],
    )  # fmt: skip
    costs = measure_layer_costs(in_memory(proto), {"x": (3, 4)})
    assert costs["inside"] == LayerCost(96, 64, 96)


def sentence(*nodes: Any, opset: int = 17) -> ModelProto:
    """Make ``y = x + table[:n]`` where ``nodes`` compute ``n`` from the sizes of ``x``."""
    constants = [
        constant("table", random_array(1, 16, 4)), constant("zero", [0], np.int64),
        constant("one", [1], np.int64), constant("first", 1, np.int64),
        constant("two", [2], np.int64),
    ]  # fmt: skip
    ending = [op("Slice", "table zero n one", "part", "cut"), op("Add", "x part", "y", "add")]
    return model(
        [*nodes, *ending], [value("x", ("batch", "words", 4))], [value("y", None)], constants,
        opset=opset,
    )  # fmt: skip


@pytest.mark.parametrize(
    "nodes",
    [
        (op("Shape", "x", "n", start=1, end=2),),
        (op("Shape", "x", "s"), op("Gather", "s one", "n", axis=0)),
        (op("Shape", "x", "s"), op("Gather", "s first", "g", axis=0),
         op("Unsqueeze", "g zero", "n")),
        (op("Shape", "x", "s"), op("Slice", "s one two", "c"), op("Squeeze", "c", "q"),
         op("Unsqueeze", "q zero", "n")),
        (op("Shape", "x", "s", start=1, end=2), op("Mul", "s two", "d"), op("Div", "d two", "e"),
         op("Add", "e one", "f"), op("Sub", "f one", "g"), op("Max", "g one", "h"),
         op("Min", "h s", "i"), op("Cast", "i", "n", to=INT64)),
    ],
)  # fmt: skip
def test_sizes_that_sizes_decide(nodes: tuple[Any, ...]) -> None:
    (sizes,) = infer_sizes(in_memory(sentence(*nodes)), {"x": (2, 5, 4)})
    assert sizes["part"] == (1, 5, 4)
    assert sizes["y"] == (2, 5, 4)


def test_division_by_zero_is_no_size() -> None:
    proto = sentence(
        op("Shape", "x", "s", start=1, end=2), op("Sub", "s s", "nothing"),
        op("Div", "s nothing", "n"),
    )  # fmt: skip
    (sizes,) = infer_sizes(in_memory(proto), {"x": (2, 5, 4)})
    assert "part" not in sizes
