from __future__ import annotations

import pytest
from onnx import ModelProto, NodeProto

from tests.builders import (
    BOOL,
    FLOAT,
    INT64,
    branch_model,
    constant,
    model,
    op,
    random_array,
    value,
)
from tests.precision.rule_runs import make_context
from trtdeploy.precision.neighbours import find_fp32_movers

TABLE = constant("table", random_array(9, 4))
INPUTS = [value("x", (4, 4)), value("i", (4,), INT64)]


def movers_of(nodes: list[NodeProto], outputs: str, kept: set[str]) -> set[str]:
    described = [value(name, (4, 4)) for name in outputs.split()]
    return find(model(nodes, INPUTS, described, [TABLE]), kept)


def find(proto: ModelProto, kept: set[str]) -> set[str]:
    return find_fp32_movers(make_context(proto), kept)


WIDE = [op("Softmax", "x", "wide"), op("Transpose", "wide", "t")]
NARROW = [op("Relu", "x", "narrow"), op("Transpose", "narrow", "u")]
JOINED = [*WIDE, *NARROW, op("Concat", "t u", "c", axis=0)]


@pytest.mark.parametrize(
    ("nodes", "outputs", "expected"),
    [
        ([*WIDE, op("Exp", "t", "kept")], "kept", {"t"}),
        ([*WIDE, op("Exp", "t", "y")], "y", set()),
        ([*WIDE, op("Exp", "t", "kept"), op("Neg", "t", "y")], "kept y", {"t"}),
        (WIDE, "t", {"t"}),
        ([*NARROW, op("Exp", "u", "kept")], "kept", set()),
        (NARROW, "u", set()),
        ([*JOINED, op("Exp", "c", "kept")], "kept", {"t", "c"}),
        ([*JOINED, op("Neg", "c", "y")], "y", set()),
        (JOINED, "c", set()),
    ],
    ids=[
        "between_wide", "before_narrow", "read_by_both", "wide_output", "after_narrow",
        "narrow_output", "joined_before_wide", "joined_before_narrow", "joined_output",
    ],
)  # fmt: skip
def test_movers_follow_what_they_lie_between(
    nodes: list[NodeProto], outputs: str, expected: set[str]
) -> None:
    assert movers_of(nodes, outputs, {"wide", "kept"}) == expected


def test_a_row_of_movers_is_judged_together() -> None:
    row = [op("Transpose", "wide", "m0")]
    row += [op("Transpose", f"m{i}", f"m{i + 1}") for i in range(5)]
    nodes = [op("Softmax", "x", "wide"), *row]
    kept = movers_of([*nodes, op("Exp", "m5", "kept")], "kept", {"wide", "kept"})
    assert kept == {f"m{i}" for i in range(6)}
    assert not movers_of([*nodes, op("Neg", "m5", "y")], "y", {"wide"})


def test_what_comes_from_an_input_reaches_an_fp32_node_unrounded() -> None:
    nodes = [op("Transpose", "x", "t"), op("Exp", "t", "kept"), op("Neg", "t", "y")]
    assert movers_of(nodes, "kept y", {"kept"}) == {"t"}
    assert not movers_of([op("Transpose", "x", "t"), op("Neg", "t", "y")], "y", set())


def test_an_output_that_is_a_copy_of_an_input_is_exact() -> None:
    nodes = [op("Transpose", "x", "t"), op("Neg", "t", "y")]
    assert movers_of(nodes, "t y", set()) == {"t"}


def test_a_growing_cache_is_narrow() -> None:
    """past (an input) and the new keys become present (an output): the product decides."""
    nodes = [
        op("Relu", "x", "new"),
        op("Concat", "x new", "present", axis=0),
        op("MatMul", "x present", "y"),
    ]
    assert not movers_of(nodes, "present y", set())


def test_a_table_follows_its_readers() -> None:
    lookup = op("Gather", "table i", "row")
    assert movers_of([lookup, op("Exp", "row", "kept")], "kept", {"kept"}) == {"row"}
    assert not movers_of(
        [lookup, op("Exp", "row", "kept"), op("Neg", "row", "y")], "kept y", {"kept"}
    )


def test_the_cast_of_an_integer_is_exact_for_who_needs_it() -> None:
    nodes = [op("Cast", "i", "f", to=FLOAT), op("Exp", "f", "kept"), op("Neg", "f", "y")]
    assert movers_of(nodes, "kept y", {"kept"}) == {"f"}
    assert not movers_of([nodes[0], nodes[2]], "y", set())


def test_observers_follow_what_they_observe() -> None:
    nodes = [
        op("Softmax", "x", "wide"),
        op("Relu", "x", "narrow"),
        op("Greater", "wide x", "over_wide"),
        op("ArgMax", "narrow", "over_narrow"),
        op("Cast", "over_wide", "y", to=FLOAT),
        op("Shape", "x", "size"),
        op("Cast", "narrow", "rounded", to=INT64),
    ]
    found = movers_of(nodes, "y", {"wide"})
    assert {"over_wide", "size"} <= found
    assert not {"over_narrow", "rounded"} & found


def test_a_result_of_a_branch_is_read_by_who_reads_the_if() -> None:
    def proto(reader: str) -> ModelProto:
        return branch_model(
            [op("Transpose", "wide", "t")],
            [op("Exp", "x", "e")],
            before=[op("Softmax", "x", "wide")],
            after=[op("Neg", "p", "y", reader)],
        )

    assert find(proto("kept"), {"wide", "kept"}) == {"t", "p"}
    assert not find(proto("free"), {"wide"})
    assert find(proto("free"), {"wide", "p"}) == {"t"}


def test_a_quantizer_wants_fp32() -> None:
    nodes = [
        op("Softmax", "x", "wide"),
        op("Transpose", "wide", "t"),
        op("Cast", "t", "q", to=BOOL),
        op("Cast", "q", "y", to=FLOAT),
    ]
    assert "t" in movers_of(nodes, "y", {"wide", "q"})
