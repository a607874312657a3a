from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, helper

from tests.builders import (
    FLOAT,
    FLOAT16,
    INT64,
    branch_model,
    branch_node,
    chain,
    constant,
    graph,
    in_memory,
    loaded,
    model,
    op,
    random_array,
    value,
)
from trtdeploy.core.dtypes import DType
from trtdeploy.core.tensors import TensorSpec
from trtdeploy.graph.model import subgraphs_of, walk_graphs, walk_nodes


def test_specs_keep_names_order_types_and_symbols() -> None:
    proto = model(
        [op("Identity", "n", "m"), op("Identity", "画像:0", 'out"put')],
        [value("画像:0", ("N", 3, "H")), value("n", (), INT64), value("unranked", None)],
        [value('out"put', ("N", 3, "H")), value("m", (), INT64)],
    )
    found = in_memory(proto)
    assert found.input_specs() == (
        TensorSpec("画像:0", DType.FLOAT32, ("N", 3, "H")),
        TensorSpec("n", DType.INT64, ()),
        TensorSpec("unranked", DType.FLOAT32, None),
    )
    assert [spec.name for spec in found.output_specs()] == ['out"put', "m"]


def test_unnamed_dimensions_are_all_different() -> None:
    shape = (None, "?", -1, "N", "", 4)
    proto = model([], [value("x", shape), value("z", shape)], [value("y", shape)])
    found = in_memory(proto)
    dims = [spec.shape for spec in (*found.input_specs(), *found.output_specs())]
    assert dims == [
        ("?0", "?1", "?2", "N", "?3", 4),
        ("?4", "?5", "?6", "N", "?7", 4),
        ("?10", "?11", "?12", "N", "?13", 4),
    ]


def test_weights_listed_as_inputs_are_not_asked_for() -> None:
    weight = constant("w", [1.0])
    proto = model([op("Add", "x w", "y")], [value("x"), value("w", [1])], [value("y")], [weight])
    assert [spec.name for spec in in_memory(proto).input_specs()] == ["x"]


def test_a_sequence_input_has_no_element_type() -> None:
    sequence = helper.make_tensor_sequence_value_info("s", FLOAT, None)
    found = in_memory(model([], [sequence], []))
    assert found.input_specs() == (TensorSpec("s", DType.UNDEFINED, None),)


@pytest.mark.parametrize(("domain", "opset"), [("", 17), ("ai.onnx", 12)])
def test_opset(domain: str, opset: int) -> None:
    imports = [helper.make_opsetid("other", 3), helper.make_opsetid(domain, opset)]
    assert in_memory(ModelProto(opset_import=imports)).opset == opset


def test_opset_of_a_file_that_names_none() -> None:
    assert in_memory(ModelProto()).opset == 1


def test_a_copy_is_independent(tmp_path: Path) -> None:
    found = loaded(chain(["MatMul:w"], constants=[constant("w", random_array(4, 2000))]), tmp_path)
    copied = found.copy()
    copied.graph.node[0].name = "changed"
    copied.weights.clear()
    copied.changes.append("changed")
    assert found.graph.node[0].name == "v0"
    assert found.weights
    assert not found.changes


def test_values_of_small_and_of_streamed_constants_are_measured(tmp_path: Path) -> None:
    big = random_array(4, 2000)
    big[3, 1999] = -7e4
    proto = chain(
        ["MatMul:big", "Add:small"],
        constants=[
            constant("big", big),
            helper.make_tensor("small", FLOAT, [2], [1e-9, -2e-9]),
            constant("half", [1.5], np.float16),
        ],
    )
    found = loaded(proto, tmp_path)
    big_range, small_range, half_range = map(found.measure_initializer, found.graph.initializer)
    assert big_range.smallest == pytest.approx(-7e4)
    assert (small_range.amax, small_range.largest) == pytest.approx((2e-9, 1e-9))
    assert half_range.amax == 1.5


def test_nested_graphs_are_walked_outer_before_inner() -> None:
    inner = branch_node(
        graph([op("Relu", "x", "r")], [], [value("r")]),
        graph([op("Neg", "x", "n")], [], [value("n")]),
        "t",
    )
    proto = branch_model([inner], [op("Abs", "x", "e", "other")])
    assert [node.op_type for node in walk_nodes(proto.graph)] == ["If", "If", "Relu", "Neg", "Abs"]
    assert len(list(walk_graphs(proto.graph))) == 5


def test_graph_lists_in_attributes_are_found() -> None:
    node = helper.make_node("Many", [], [], domain="acme")
    node.attribute.append(
        helper.make_attribute("bodies", [graph([], [], []), graph([op("Relu", "x", "t")], [], [])])
    )
    assert len(subgraphs_of(node)) == 2


def test_weight_bytes_are_those_that_will_be_written(tmp_path: Path) -> None:
    found = loaded(chain(["MatMul:w"], constants=[constant("w", random_array(4, 2000))]), tmp_path)
    assert found.weight_bytes == 32_000
    assert found.graph.initializer[0].data_type == FLOAT != FLOAT16
