"""What the values of an input are used for, followed through the graph."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, TensorProto

from tests.builders import BOOL, INT64, constant, graph, loaded, model, normalized, op, value
from trtdeploy.graph.index import build_index
from trtdeploy.graph.normalization import normalize_model
from trtdeploy.samples.synthetic.shapes import infer_sizes
from trtdeploy.samples.synthetic.uses import InputTracer, InputUses

TABLE = constant("table", np.zeros((10, 4)))
CONSTANTS = (
    TABLE,
    constant("wide", np.zeros((3, 20))),
    constant("grid", np.zeros((6, 4, 5))),
    constant("zero", 0, np.int64),
    constant("one", 1, np.int64),
    constant("two", 2, np.int64),
    constant("minus", -1, np.int64),
    constant("pad", [1], np.int64),
    constant("depth", 17, np.int64),
    constant("on_off", [0.0, 1.0]),
    constant("classes", np.arange(33)[None], np.int64),
    constant("rate", 16000, np.int64),
    constant("flat", [-1], np.int64),
    constant("f_one", 1.0),
)


def trace(
    nodes: Sequence[NodeProto],
    shape: tuple[int, ...] = (2, 3),
    dtype: int = INT64,
    others: Sequence[Any] = (),
) -> InputUses:
    """Return the uses of ``ids`` in a model whose result is ``y``."""
    declared = ["N", *shape[1:]] if shape else []
    proto = model(
        nodes, [value("ids", declared, dtype), *others], [value("y", None)], CONSTANTS, opset=17
    )
    index = build_index(normalized(proto))
    return InputTracer(index, infer_sizes(index.model, {"ids": shape}, {})).find_uses("ids")


@pytest.mark.parametrize(
    ("nodes", "low", "high"),
    [
        ([op("Gather", "table ids", "y")], 0, 9),
        ([op("Gather", "wide ids", "y", axis=1)], 0, 19),
        ([op("Gather", "wide ids", "y", axis=-1)], 0, 19),
        ([op("GatherElements", "table ids", "y", axis=0)], 0, 9),
        ([op("GatherND", "grid ids", "y")], 0, 3),
        ([op("ScatterElements", "table ids u", "y")], 0, 9),
        ([op("OneHot", "ids depth on_off", "y")], 0, 16),
        ([op("Equal", "ids classes", "e"), op("Cast", "e", "y", to=1)], 0, 32),
        ([op("Cast", "ids", "c", to=TensorProto.INT32), op("Gather", "table c", "y")], 0, 9),
        ([op("Reshape", "ids flat", "r"), op("Gather", "table r", "y")], 0, 9),
        ([op("Add", "ids two", "a"), op("Gather", "table a", "y")], 0, 7),
        ([op("Sub", "ids one", "a"), op("Gather", "table a", "y")], 1, 10),
        ([op("Mul", "two ids", "a"), op("Gather", "table a", "y")], 0, 4),
        ([op("Div", "ids two", "a"), op("Gather", "table a", "y")], 0, 18),
        ([op("Concat", "ids ids", "a", axis=0), op("Gather", "table a", "y")], 0, 9),
        ([op("Gather", "table ids", "a"), op("Gather", "wide ids", "y", axis=1)], 0, 9),
        ([op("Gather", "ids zero", "a", axis=1), op("Gather", "table a", "y")], 0, 9),
    ],
    ids=lambda case: "-".join(n.op_type for n in case) if isinstance(case, list) else None,
)
def test_row_numbers_stay_inside(nodes: list[NodeProto], low: int, high: int) -> None:
    uses = trace(nodes, others=[value("u", ("N", 3))])
    assert uses.is_row_number
    assert (uses.low, uses.high) == (low, high)
    assert uses.limit.startswith(nodes[-1].op_type if len(nodes) == 1 else "")


@pytest.mark.parametrize(
    "nodes",
    [
        [op("Mod", "ids two", "a"), op("Gather", "table a", "y")],
        [op("Min", "ids two", "a"), op("Gather", "table a", "y")],
        [op("Gather", "ids zero", "y")],
        [op("CumSum", "ids zero", "a"), op("Gather", "table a", "y")],
    ],
)
def test_other_arithmetic_is_not_followed(nodes: list[NodeProto]) -> None:
    assert not trace(nodes).is_row_number


def test_range_limit_is_a_size_up_to_the_table() -> None:
    nodes = [op("Range", "zero ids one", "r"), op("Gather", "table r", "y")]
    uses = trace(nodes, shape=())
    assert (uses.is_size, uses.high) == (True, 10)


def test_computed_table_is_measured_at_the_given_shapes() -> None:
    nodes = [op("Identity", "x", "rows"), op("Gather", "rows ids", "y")]
    index = build_index(
        normalized(
            model(nodes, [value("x", ("R", 4)), value("ids", ("N",), INT64)], [value("y", None)])
        )
    )
    known = InputTracer(index, infer_sizes(index.model, {"x": (6, 4), "ids": (2,)}, {}))
    assert known.find_uses("ids").high == 5
    unknown = InputTracer(index, {}).find_uses("ids")
    assert (unknown.is_row_number, unknown.has_unknown_table, unknown.high) == (True, True, None)


def test_weights_on_the_disk_have_sizes(tmp_path: Path) -> None:
    big = constant("big", np.zeros((3000, 4)))
    proto = model(
        [op("Gather", "big ids", "y")], [value("ids", ("N",), INT64)], [value("y", None)], [big]
    )
    index = build_index(normalize_model(loaded(proto, tmp_path)))
    assert index.model.weights
    tracer = InputTracer(index, infer_sizes(index.model, {"ids": (2,)}, {}))
    assert tracer.find_uses("ids").high == 2999


@pytest.mark.parametrize(
    "nodes",
    [
        [op("Cast", "ids", "y", to=BOOL)],
        [op("Cast", "ids", "c", to=1), op("Sub", "f_one c", "y")],
        [op("Unsqueeze", "ids pad", "u"), op("Cast", "u", "b", to=BOOL), op("Not", "b", "y")],
    ],
)
def test_truth_values_are_seen(nodes: list[NodeProto]) -> None:
    assert trace(nodes).is_tested


def test_compared_numbers_are_collected() -> None:
    uses = trace([op("Equal", "ids rate", "y")], shape=())
    assert uses.compared == {16000.0}
    assert not uses.is_row_number


@pytest.mark.parametrize(
    "nodes",
    [
        [op("ConstantOfShape", "ids", "y")],
        [op("Concat", "ids pad", "s", axis=0), op("Expand", "f_one s", "y")],
        [op("Div", "one ids", "y")],
    ],
)
def test_sizes_and_divisors_are_seen(nodes: list[NodeProto]) -> None:
    assert trace(nodes, shape=(2,)).is_size


def test_branches_are_entered_and_left() -> None:
    inside = graph([op("Gather", "table ids", "t")], [], [value("t", None)])
    passed = graph([op("Identity", "ids", "e")], [], [value("e", None)])
    same = graph([op("Identity", "ids", "t2")], [], [value("t2", None)])
    flag = value("flag", (), BOOL)
    assert (
        trace(
            [op("If", "flag", "y", then_branch=inside, else_branch=inside_else())], others=[flag]
        ).high
        == 9
    )
    nodes = [
        op("If", "flag", "p", then_branch=same, else_branch=passed),
        op("Gather", "table p", "y"),
    ]
    assert trace(nodes, others=[flag]).high == 9


def inside_else() -> Any:
    zeros = constant("zeros", np.zeros((2, 3, 4)))
    return graph([op("Identity", "zeros", "e")], [], [value("e", None)], [zeros])


def test_loop_state_is_followed() -> None:
    body = graph(
        [
            op("Identity", "go_on", "go_on_next"),
            op("Identity", "s", "s_next"),
            op("Gather", "table s", "row"),
        ],
        [value("i", (), INT64), value("go_on", (), BOOL), value("s", ("N", 3), INT64)],
        [value("go_on_next", (), BOOL), value("s_next", None, INT64), value("row", None)],
    )
    nodes = [
        op("Loop", "one - ids", "last rows", body=body),
        op("Add", "last two", "more"),
        op("Gather", "table more", "y"),
    ]
    assert trace(nodes).high == 7
