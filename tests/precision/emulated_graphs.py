"""Random typed graphs: every value has one shape, so that any node can follow any other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from onnx import ModelProto, NodeProto, TensorProto

from tests.builders import FLOAT, constant, model, op, random_array, value

SHAPE = (1, 4, 4, 4)
OPSET = 22
INPUTS = ("x", "z")

Step = tuple[str, int, int]
Make = Callable[[str, str, str], list[NodeProto]]


def _unary(op_type: str, **attributes: Any) -> Make:
    return lambda a, _, out: [op(op_type, a, out, **attributes)]


def _binary(op_type: str) -> Make:
    return lambda a, b, out: [op(op_type, f"{a} {b}", out)]


def _with(op_type: str, constants: str, **attributes: Any) -> Make:
    return lambda a, _, out: [op(op_type, f"{a} {constants}", out, **attributes)]


def _then(first: Callable[[str, str, str], NodeProto], last: str) -> Make:
    """Make a helper value ``<out>_h``, then ``last``, written with {a}, {b}, {h} and {out}."""

    def make(a: str, b: str, out: str) -> list[NodeProto]:
        helper = f"{out}_h"
        op_type, operands, results = last.format(a=a, b=b, h=helper, out=out).split(" -> ")
        return [first(a, b, helper), op(op_type, operands, results)]

    return make


def _swap_halves(a: str, _: str, out: str) -> list[NodeProto]:
    parts = f"{out}_p {out}_q"
    return [
        op("Split", f"{a} halves", parts, axis=1),
        op("Concat", f"{out}_q {out}_p", out, axis=1),
    ]


def _gemm(a: str, _: str, out: str) -> list[NodeProto]:
    return [
        op("Reshape", f"{a} to_rows", f"{out}_rows"),
        op("Gemm", f"{out}_rows w_gemm b_gemm", f"{out}_gemm", alpha=0.5),
        op("Reshape", f"{out}_gemm to_shape", out),
    ]


_ON_MAGNITUDES = "{h} -> {out}"

EXACT: dict[str, Make] = {
    **{name: _binary(name) for name in ("Add", "Sub", "Mul", "Div", "Max", "Min")},
    **{
        name: _unary(name)
        for name in ("Neg", "Abs", "Relu", "Floor", "Ceil", "Round", "Sign", "Reciprocal")
    },
    "Sqrt": _then(lambda a, _, h: op("Abs", a, h), f"Sqrt -> {_ON_MAGNITUDES}"),
    "Transpose": _unary("Transpose", perm=[0, 2, 3, 1]),
    "Concat": _then(
        lambda a, b, h: op("Concat", f"{a} {b}", h, axis=1), "Slice -> {h} two six one -> {out}"
    ),
    "Split": _swap_halves,
    "Where": _then(lambda a, b, h: op("Greater", f"{a} {b}", h), "Where -> {h} {a} {b} -> {out}"),
    "Clip": _with("Clip", "low high"),
    "Gather": _with("Gather", "order", axis=2),
    "Pad": _then(lambda a, _, h: op("Pad", f"{a} pads", h), "Slice -> {h} two six one -> {out}"),
}
"""Nodes whose result does not depend on an order of summation."""

SUMMING: dict[str, Make] = {
    "MatMul": _binary("MatMul"),
    "Linear": _with("MatMul", "w"),
    "Gemm": _gemm,
    "Conv": _with("Conv", "w_conv", pads=[1, 1, 1, 1]),
    "Conv1x1": _then(
        lambda a, b, h: op("Concat", f"{a} {b}", h, axis=1), "Conv -> {h} w_1x1 -> {out}"
    ),
    "ReduceMean": _then(lambda a, _, h: op("ReduceMean", f"{a} one", h), "Sub -> {a} {h} -> {out}"),
    "ReduceSum": _then(lambda a, _, h: op("ReduceSum", f"{a} two", h), "Add -> {a} {h} -> {out}"),
    "GlobalAveragePool": _then(
        lambda a, _, h: op("GlobalAveragePool", a, h), "Sub -> {a} {h} -> {out}"
    ),
    "Softmax": _unary("Softmax", axis=1),
    **{name: _unary(name) for name in ("Sigmoid", "Tanh", "Exp", "Erf", "HardSwish", "LeakyRelu")},
    "Log": _then(lambda a, _, h: op("Abs", a, h), f"Log -> {_ON_MAGNITUDES}"),
}
"""Nodes that sum, or use a function that no two libraries round alike."""

KINDS = {**EXACT, **SUMMING}


def steps_of(kinds: Sequence[str]) -> st.SearchStrategy[list[Step]]:
    operand = st.integers(0, 9)
    return st.lists(st.tuples(st.sampled_from(kinds), operand, operand), min_size=1, max_size=7)


def make_graph(steps: Sequence[Step], code: int, narrow: np.dtype[Any]) -> ModelProto:
    """Make ``y`` of ``x`` and ``z`` (FP32, cast to the narrow type at the border)."""
    nodes = [op("Cast", name, f"{name}_low", to=code) for name in INPUTS]
    values = [f"{name}_low" for name in INPUTS]
    for position, (kind, first, second) in enumerate(steps):
        name = f"v{position}"
        a, b = values[-1 - first % len(values)], values[-1 - second % len(values)]
        nodes += KINDS[kind](a, b, name)
        values.append(name)
    nodes.append(op("Cast", values[-1], "y", to=FLOAT))
    inputs = [value(name, SHAPE) for name in INPUTS]
    return model(nodes, inputs, [value("y", SHAPE)], _make_constants(narrow), opset=OPSET)


def _make_constants(narrow: np.dtype[Any]) -> list[TensorProto]:
    weights = {
        "w": random_array(4, 4, seed=1),
        "w_gemm": random_array(16, 16, seed=2, scale=0.4),
        "b_gemm": random_array(16, seed=3),
        "w_conv": random_array(4, 4, 3, 3, seed=4, scale=0.3),
        "w_1x1": random_array(4, 8, 1, 1, seed=5, scale=0.5),
        "low": -0.7,
        "high": 3.3,
    }
    integers = {
        "one": [1], "two": [2], "six": [6], "halves": [2, 2], "order": [3, 1, 0, 2],
        "pads": [0, 1, 0, 0, 0, 3, 0, 0], "to_rows": [4, 16], "to_shape": list(SHAPE),
    }  # fmt: skip
    return [
        *(constant(name, values, narrow) for name, values in weights.items()),
        *(constant(name, values, np.int64) for name, values in integers.items()),
    ]
