"""Graphs that are long, or that fork and rejoin often: time must grow with size only."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from onnx import ModelProto, NodeProto

from tests.builders import chain, constant, loaded, model, op, value
from trtdeploy.config.recipe import RECIPES
from trtdeploy.graph.saving import save_model
from trtdeploy.precision.typed_model import apply_recipe
from trtdeploy.precision.typing_options import TypingOptions

TINY, WIDE = constant("tiny", [1e-12]), constant("wide", [1e6])
NODES, SECONDS = 20_000, 60  # on two busy cores; exponential or quadratic work takes hours


def type_it(proto: ModelProto, folder: Path) -> dict[str, int]:
    """Type and save ``proto``; return how many nodes got each type."""
    started = time.perf_counter()
    typed = apply_recipe(loaded(proto, folder), TypingOptions(RECIPES["fp16"]))
    save_model(typed.model, folder / "typed.onnx")
    assert time.perf_counter() - started < SECONDS
    return typed.plan.count_by_dtype()


def repeated(*op_types: str) -> ModelProto:
    count = NODES // len(op_types)
    return chain([*op_types] * count, constants=[TINY, WIDE])


@pytest.mark.parametrize(
    ("proto", "counts"),
    [
        (repeated("Relu"), {"float16": NODES}),
        (repeated("Softmax", "Transpose"), {"float32": NODES}),
        (repeated("Add:tiny", "Sqrt", "Reciprocal", "Sqrt"), {"float32": NODES}),
    ],
    ids=["relu", "softmax_transpose", "tiny_roots"],
)
def test_a_long_chain(proto: ModelProto, counts: dict[str, int], tmp_path: Path) -> None:
    assert type_it(proto, tmp_path) == counts


def forking(first: str, op_type: str, last: str, depth: int = 200) -> ModelProto:
    """Make ``v -> op(v, v) -> ...``: the number of paths doubles with every node."""
    first_type, _, operand = first.partition(":")
    nodes: list[NodeProto] = [op(first_type, f"x {operand}", "v0")]
    nodes += [op(op_type, f"v{i} v{i}", f"v{i + 1}") for i in range(depth)]
    nodes.append(op(last, f"v{depth}", "y"))
    return model(nodes, [value("x")], [value("y")], [TINY, WIDE])


@pytest.mark.parametrize(
    "proto",
    [
        forking("Mul:wide", "Add", "Relu"),
        forking("Mul:wide", "Mul", "Softmax"),
        forking("Add:tiny", "Mul", "Sqrt"),
        forking("Add:tiny", "Div", "Sqrt"),
        forking("Add:x", "Mul", "Sin"),
        forking("Add:x", "Sub", "Softmax"),
        forking("Mul:x", "Max", "ReduceMean"),
    ],
    ids=["wide_sum", "wide_product", "tiny_product", "tiny_ratio", "angle", "scores", "squares"],
)
def test_a_graph_with_more_paths_than_atoms(proto: ModelProto, tmp_path: Path) -> None:
    proto.graph.output[0].ClearField("type")
    proto.graph.output[0].CopyFrom(value("y", None))
    assert sum(type_it(proto, tmp_path).values()) == 202


def test_one_value_read_by_many(tmp_path: Path) -> None:
    nodes = [op("Softmax", "x", "s"), op("Transpose", "s", "t")]
    nodes += [op("Exp" if i % 2 else "Softmax", "t", f"e{i}") for i in range(5_000)]
    nodes.append(op("Sum", " ".join(f"e{i}" for i in range(5_000)), "y"))
    counts = type_it(model(nodes, [value("x")], [value("y")]), tmp_path)
    assert counts == {"float32": 2_502, "float16": 2_501}
