from __future__ import annotations

from onnx import helper

from tests.builders import FLOAT, branch_model, in_memory, model, op, value
from trtdeploy.graph.model import OnnxModel
from trtdeploy.graph.passes.clear_anonymous_dims import ClearAnonymousDimsPass


def dims_of(found: OnnxModel, name: str) -> list[str]:
    graph = found.graph
    described = next(v for v in [*graph.input, *graph.output, *graph.value_info] if v.name == name)
    return [str(dim).strip() for dim in described.type.tensor_type.shape.dim]


def test_placeholders_and_negative_sizes_lose_their_name() -> None:
    shape = (-1, "?", "N", "-1", "None", 3, 0)
    found = in_memory(model([op("Relu", "x", "y")], [value("x", shape)], [value("y", shape)]))
    found.graph.value_info.append(value("h", shape))
    ClearAnonymousDimsPass()(found)
    for name in ("x", "y", "h"):
        assert dims_of(found, name) == [
            "", "", 'dim_param: "N"', "", "", "dim_value: 3", "dim_value: 0",
        ]  # fmt: skip


def test_unknown_rank_and_sequences_stay() -> None:
    sequence = helper.make_tensor_sequence_value_info("s", FLOAT, None)
    found = in_memory(model([], [value("x", None), sequence], []))
    before = found.proto.SerializeToString(deterministic=True)
    ClearAnonymousDimsPass()(found)
    assert found.proto.SerializeToString(deterministic=True) == before


def test_nested_graphs_are_cleared() -> None:
    found = in_memory(branch_model([op("Relu", "x", "t")], [op("Relu", "x", "e")]))
    body = found.graph.node[0].attribute[0].g
    body.output[0].CopyFrom(value("t", ("?", 4)))
    ClearAnonymousDimsPass()(found)
    assert [dim.dim_param for dim in body.output[0].type.tensor_type.shape.dim] == ["", ""]
