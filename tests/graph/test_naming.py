from __future__ import annotations

import time

from tests.builders import FLOAT, branch_model, constant, op, value
from trtdeploy.graph.naming import NameSource


def test_names_are_made_once() -> None:
    names = NameSource(["a", "b_2"])
    assert [names.make(wanted) for wanted in ("a", "b", "b", "a", "c")] == [
        "a_2", "b", "b_3", "a_3", "c",
    ]  # fmt: skip


def test_every_name_of_every_graph_is_taken() -> None:
    proto = branch_model(
        [op("Add", "x c", "t", "adder")],
        [op("Relu", "x", "e")],
        inner_constants=([constant("c", [1.0])], []),
    )
    proto.graph.value_info.append(value("described", ("N",), FLOAT))
    names = NameSource.for_graph(proto.graph)
    for taken in ("x", "flag", "y", "pick", "described", "c", "t", "adder", "e"):
        assert names.make(taken) == f"{taken}_2"


def test_many_equal_wishes_are_quick() -> None:
    names = NameSource([])
    started = time.perf_counter()
    made = {names.make("same") for _ in range(20_000)}
    assert len(made) == 20_000
    assert time.perf_counter() - started < 2
