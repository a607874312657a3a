"""Limits of single operators, for the engines they bind and for no others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

from tests.builders import BOOL, INT64, constant, in_memory, model, op, value
from tests.preflight.models import DOUBLE, ints
from trtdeploy.preflight.checking import check_model
from trtdeploy.preflight.target import CheckTarget

RTX = CheckTarget("tensorrt_rtx", "1.7.1")
TRT8, TRT10 = CheckTarget("tensorrt", "8.6.2"), CheckTarget("tensorrt", "10.3")

IMAGE = value("x", ("N", 4, 6, 6))


def single(
    operands: str, outputs: str, op_type: str, constants: Any = (), opset: int = 17, **attrs: Any
) -> ModelProto:
    """Make a model of one node ``tested``; operands without a constant become inputs."""
    given = {tensor.name for tensor in constants}
    inputs = [IMAGE] + [
        value(name, None, INT64) for name in operands.split()[1:] if name not in {*given, "-"}
    ]
    nodes = [op(op_type, operands, outputs, "tested", **attrs)]
    results = [value(name, None) for name in outputs.split()]
    return model(nodes, inputs, results, constants, opset=opset)


def max_pool(outputs: str = "y", **attrs: Any) -> ModelProto:
    return single("x", outputs, "MaxPool", kernel_shape=[2, 2], **attrs)


def resize(**attrs: Any) -> ModelProto:
    return single("x - s", "y", "Resize", [constant("s", [1, 1, 2, 2])], 18, **attrs)


def top_k(k: int = 2, **attrs: Any) -> ModelProto:
    nodes = [op("TopK", "x k", "y i", "tested", **attrs)]
    outputs = [value("y", None), value("i", None, INT64)]
    return model(nodes, [value("x", ("N", 5000))], outputs, [ints("k", k)])


def reduce_mean(*constants: Any) -> ModelProto:
    return single("x axes", "y", "ReduceMean", constants, 18)


def scatter(op_type: str, reduction: str) -> ModelProto:
    updates = constant("u", np.ones((1, 1, 1, 1)))
    index = (
        ints("i", 0) if op_type == "ScatterND" else constant("i", np.zeros((1, 1, 1, 1)), "int64")
    )
    return single("x i u", "y", op_type, [index, updates], 18, reduction=reduction)


def reduce_flags() -> ModelProto:
    nodes = [op("ReduceMax", "x", "y", "tested")]
    return model(nodes, [value("x", ("N", 4), BOOL)], [value("y", None, BOOL)], opset=20)


def suppression(dtype: int) -> ModelProto:
    nodes = [op("NonMaxSuppression", "boxes scores", "y", "tested")]
    inputs = [value("boxes", ("N", 9, 4), dtype), value("scores", ("N", 2, 9), dtype)]
    return model(nodes, inputs, [value("y", None, INT64)])


def grid_sample(rank: int) -> ModelProto:
    nodes = [op("GridSample", "x grid", "y", "tested")]
    spatial = (5,) * (rank - 2)
    inputs = [value("x", ("N", 2, *spatial)), value("grid", ("N", *spatial, rank - 2))]
    return model(nodes, inputs, [value("y", None)], opset=20)


def codes_at_node(proto: ModelProto, target: CheckTarget) -> set[str]:
    report = check_model(in_memory(proto), target=target)
    return {finding.code for finding in report.blockers if finding.node == "tested"}


@pytest.mark.parametrize(
    ("proto", "code", "bound", "free"),
    [
        (max_pool("y i"), "extra-output", (RTX, TRT10), ()),
        (max_pool(dilations=[2, 2]), "attribute-value", (RTX, TRT10), ()),
        (resize(antialias=1, mode="linear"), "attribute-value", (RTX, TRT10), ()),
        (resize(coordinate_transformation_mode="half_pixel_symmetric"), "attribute-value",
         (RTX, TRT10), ()),
        (resize(keep_aspect_ratio_policy="not_larger"), None, (), (RTX,)),
        (top_k(sorted=0), "attribute-value", (TRT10,), (RTX,)),
        (top_k(3841), "operand-too-large", (RTX, TRT10), ()),
        (scatter("ScatterND", "add"), "attribute-value", (RTX, TRT10), ()),
        (scatter("ScatterElements", "add"), "attribute-value", (RTX, TRT8), (TRT10,)),
        (grid_sample(5), "input-rank", (TRT10,), (RTX,)),
        (reduce_mean(), "runtime-operand", (RTX, TRT10), ()),
        (reduce_flags(), "input-type", (RTX, TRT10), ()),
        (suppression(DOUBLE), "invalid-type", (RTX, TRT10), ()),
    ],
    ids=str,
)  # fmt: skip
def test_limit_binds(proto: ModelProto, code: str, bound: Any, free: Any) -> None:
    for target in bound:
        assert code in codes_at_node(proto, target), target.engine_title
    for target in free:
        assert code not in codes_at_node(proto, target), target.engine_title


@pytest.mark.parametrize(
    "proto",
    [
        max_pool(),
        max_pool(dilations=[1, 1]),
        resize(mode="linear", coordinate_transformation_mode="asymmetric"),
        top_k(3840),
        reduce_mean(ints("axes", 2, 3)),
        scatter("ScatterND", "none"),
        grid_sample(4),
        suppression(1),
    ],
    ids=range(8),
)
def test_ordinary_use_is_free(proto: ModelProto) -> None:
    for target in (RTX, TRT8, TRT10):
        assert codes_at_node(proto, target) == set(), target.engine_title


def test_axes_computed_from_constants_are_known_when_building() -> None:
    nodes = [
        op("Concat", "a b", "axes", "join", axis=0),
        op("ReduceMean", "x axes", "y", "tested"),
    ]
    constants = [ints("a", 2), ints("b", 3)]
    proto = model(nodes, [IMAGE], [value("y", None)], constants, opset=18)
    assert codes_at_node(proto, RTX) == set()
