from __future__ import annotations

import numpy as np
import pytest
from onnx import NodeProto, TensorProto

from tests.builders import FLOAT, constant, model, op, value
from tests.precision.rule_runs import find_kept
from trtdeploy.precision.rules.variance import KeepVarianceRule

CONSTANTS = [
    constant("two", 2.0),
    constant("two_int", 2, np.int64),
    constant("three", 3.0),
    constant("half", 0.5),
    constant("eps", 1e-5),
    constant("count", 32.0),
    constant("gamma", np.ones(4)),
    constant("axis", [1], np.int64),
]
HEAD = [op("MatMul", "x w", "h"), op("ReduceMean", "h", "mu", axes=[-1]), op("Sub", "h mu", "d")]
TAIL = [op("Mul", "n gamma", "y")]


def kept_of(*middle: NodeProto) -> set[str]:
    weight = constant("w", np.eye(4))
    nodes = [*HEAD, *middle, *TAIL]
    return set(
        find_kept(
            KeepVarianceRule(), model(nodes, [value("x")], [value("y")], [*CONSTANTS, weight])
        )
    )


MEAN = op("ReduceMean", "sq", "var", axes=[-1])
ROOT = [op("Add", "var eps", "ve"), op("Sqrt", "ve", "sd")]
END = [*ROOT, op("Div", "d sd", "n")]


@pytest.mark.parametrize(
    "square",
    [op("Pow", "d two", "sq"), op("Pow", "d two_int", "sq"), op("Mul", "d d", "sq")],
    ids=["pow", "integer_pow", "mul"],
)
def test_a_layer_norm_is_kept_from_the_square_to_the_division(square: NodeProto) -> None:
    assert kept_of(square, MEAN, *END) == {"sq", "var", "ve", "sd", "n"}


def test_reciprocal_root() -> None:
    kept = kept_of(
        op("Mul", "d d", "sq"), MEAN, *ROOT, op("Reciprocal", "sd", "r"), op("Mul", "d r", "n")
    )
    assert kept == {"sq", "var", "ve", "sd", "r", "n"}


def test_power_of_a_half_and_no_epsilon() -> None:
    kept = kept_of(
        op("Mul", "d d", "sq"), MEAN, op("Pow", "var half", "sd"), op("Div", "d sd", "n")
    )
    assert kept == {"sq", "var", "sd", "n"}


def test_a_clip_in_place_of_the_epsilon_and_an_expand() -> None:
    kept = kept_of(
        op("Mul", "d d", "sq"),
        op("ReduceSum", "sq axis", "sum"),
        op("Sqrt", "sum", "norm"),
        op("Clip", "norm eps", "safe"),
        op("Shape", "d", "shape"),
        op("Expand", "safe shape", "wide"),
        op("Div", "d wide", "n"),
    )
    assert kept == {"sq", "sum", "norm", "safe", "n"}


def test_a_sum_divided_by_a_count_goes_on() -> None:
    """torch.std multiplies by N and divides by N - 1 between the mean and the root."""
    kept = kept_of(
        op("Mul", "d d", "sq"),
        op("ReduceMean", "sq", "mean", axes=[-1]),
        op("Mul", "mean count", "sum"),
        op("Shape", "d", "shape"),
        op("ReduceProd", "shape", "elements"),
        op("Cast", "elements", "dynamic_count", to=FLOAT),
        op("Div", "sum dynamic_count", "var"),
        *END,
    )
    assert kept == {"sq", "mean", "sum", "var", "ve", "sd", "n"}


def test_mean_of_squares_minus_square_of_mean() -> None:
    kept = kept_of(
        op("Mul", "h h", "sq"),
        op("ReduceMean", "sq", "mean_of_squares", axes=[-1]),
        op("Mul", "mu mu", "square_of_mean"),
        op("Sub", "mean_of_squares square_of_mean", "var"),
        *END,
    )
    assert kept == {"mu", "sq", "mean_of_squares", "square_of_mean", "var", "ve", "sd", "n"}


def test_a_mean_written_as_a_sum_divided_by_a_count_is_kept_before_it_is_squared() -> None:
    kept = kept_of(
        op("ReduceSum", "h axis", "total"),
        op("Div", "total count", "average"),
        op("Unsqueeze", "average axis", "column"),
        op("Pow", "column two", "square_of_mean"),
        op("Mul", "h h", "sq"),
        op("ReduceMean", "sq", "mean_of_squares", axes=[-1]),
        op("Sub", "mean_of_squares square_of_mean", "var"),
        *END,
    )
    assert {"total", "average", "column", "square_of_mean", "mean_of_squares"} <= kept
    assert "mu" not in kept


@pytest.mark.parametrize("op_type", ["ReduceL2", "ReduceSumSquare"])
def test_reductions_that_square_by_themselves(op_type: str) -> None:
    kept = kept_of(op(op_type, "h", "var", axes=[-1]), *END)
    assert kept == {"var", "ve", "sd", "n"}


def test_an_identity_in_between_is_passed() -> None:
    kept = kept_of(op("Mul", "d d", "sq"), MEAN, op("Identity", "var", "v"), op("Div", "d v", "n"))
    assert kept == {"sq", "var", "n"}


@pytest.mark.parametrize(
    "middle",
    [
        [op("Pow", "d three", "sq"), MEAN, *END],
        [op("Mul", "d gamma", "sq"), MEAN, *END],
        [op("Abs", "d", "sq"), MEAN, *END],
        [op("Mul", "d d", "sq"), op("Relu", "sq", "n")],
    ],
    ids=["cube", "scaled", "absolute", "no_mean"],
)
def test_other_patterns_are_free(middle: list[NodeProto]) -> None:
    assert kept_of(*middle) == set()


def test_the_pattern_ends_at_the_product_with_data() -> None:
    kept = kept_of(
        op("Mul", "d d", "sq"), MEAN, *ROOT, op("Div", "d sd", "u"), op("Mul", "u gamma", "n")
    )
    assert "n" not in kept
    assert "y" not in kept


def test_the_exponent_may_be_a_tensor() -> None:
    twos: TensorProto = constant("twos", [2.0, 2.0])
    nodes = [op("Pow", "x twos", "s"), op("ReduceMean", "s", "y")]
    proto = model(nodes, [value("x")], [value("y", None)], [twos])
    assert find_kept(KeepVarianceRule(), proto).keys() == {"s", "y"}
