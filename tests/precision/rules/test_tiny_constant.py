from __future__ import annotations

from tests.builders import chain, constant, model, op, value
from tests.precision.rule_runs import find_kept
from trtdeploy.precision.rules.tiny_constant import KeepTinyConstantRule

TINY = constant("tiny", [1e-12])
RULE = KeepTinyConstantRule()


def test_the_reader_and_the_division_it_protects_are_kept() -> None:
    proto = model(
        [op("Abs", "x", "a"), op("Add", "a tiny", "n"), op("Div", "x n", "d"), op("Neg", "d", "y")],
        [value("x")],
        [value("y")],
        [TINY],
    )
    kept = find_kept(RULE, proto)
    assert kept.keys() == {"n", "d"}
    assert "'tiny' is at most 1e-12, below the smallest normal float16" in kept["n"]
    assert kept["d"] == "it depends on the tiny constant 'tiny'"


def test_the_division_is_found_behind_reshapes() -> None:
    """``x / norm(x).clamp_min(1e-12).expand_as(x)`` of a zero vector is 0, not 0 / 0."""
    proto = model(
        [
            op("ReduceMax", "x", "n", axes=[-1]),
            op("Clip", "n tiny", "c"),
            op("Expand", "c shape", "wide"),
            op("Div", "x wide", "y"),
        ],
        [value("x", (2, 4))],
        [value("y", (2, 4))],
        [constant("tiny", 1e-12), constant("shape", [2, 4], "int64")],
    )
    assert find_kept(RULE, proto).keys() == {"c", "y"}


def test_reciprocal_roots_are_kept_until_their_product() -> None:
    proto = chain(
        ["Abs", "Add:tiny", "Sqrt", "Reciprocal", "Mul:gain", "Mul:gain", "Relu"],
        constants=[TINY, constant("gain", [2.0])],
    )
    assert find_kept(RULE, proto).keys() == {"v1", "v2", "v3", "v4"}


def test_one_over_something_tiny_is_as_good_as_a_reciprocal() -> None:
    proto = model(
        [op("Add", "x tiny", "n"), op("Div", "one n", "d"), op("Mul", "d x", "y")],
        [value("x")],
        [value("y")],
        [TINY, constant("one", 1.0)],
    )
    assert find_kept(RULE, proto).keys() == {"n", "d", "y"}


def test_ordinary_and_zero_constants_are_free() -> None:
    constants = [constant("ordinary", [1e-4, 1e-9]), constant("zero", [0.0])]
    assert not find_kept(RULE, chain(["Add:ordinary", "Add:zero", "Sqrt"], constants=constants))


def test_bfloat16_has_room_for_small_numbers() -> None:
    assert not find_kept(RULE, chain(["Add:tiny", "Sqrt"], constants=[TINY]), "bf16")
    constants = [constant("tiny", [1e-39])]
    assert find_kept(RULE, chain(["Add:tiny", "Sqrt"], constants=constants), "bf16")


def test_infinities_and_not_a_number_are_not_tiny() -> None:
    constants = [constant("tiny", [float("inf"), float("nan")])]
    assert not find_kept(RULE, chain(["Add:tiny"], constants=constants))


def test_small_scales_make_no_small_results() -> None:
    proto = model(
        [
            op("QuantizeLinear", "x tiny", "q"),
            op("DequantizeLinear", "q tiny", "d"),
            op("Mul", "d d", "y"),
        ],
        [value("x")],
        [value("y")],
        [constant("tiny", 1e-12)],
    )
    assert not find_kept(RULE, proto)
