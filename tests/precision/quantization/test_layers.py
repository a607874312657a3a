from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto

from tests.builders import constant, model, normalized, op, random_array, value
from tests.precision.quantized_models import run_plainly
from trtdeploy.graph.index import build_index
from trtdeploy.precision.quantization.layers import Layer, find_layers

Made = tuple[ModelProto, tuple[int, ...]]


def make_layer(
    op_type: str, operands: str, data: tuple[int, ...], weight: tuple[int, ...], **attributes: Any
) -> Made:
    proto = model(
        [op(op_type, operands, "y", "layer", **attributes)],
        [value("x", data)],
        [value("y", None)],
        [constant("w", random_array(*weight, seed=1)), constant("zero", np.zeros(1))],
    )
    return proto, data


def describe(proto: ModelProto) -> Layer:
    return find_layers(build_index(normalized(proto)))["layer"]


sizes = st.integers(1, 4)


@st.composite
def convolutions(draw: st.DrawFn) -> Made:
    rank, groups = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    inside, outside, kernel = draw(sizes), draw(sizes), draw(st.integers(1, 2))
    data, window = (2, inside * groups, *[3] * rank), [kernel] * rank
    if draw(st.booleans()):
        return make_layer("Conv", "x w", data, (outside * groups, inside, *window), group=groups)
    return (
        make_layer("ConvTranspose", "x w", data, (inside, outside, *window), group=1)
        if (groups == 1)
        else make_layer("Conv", "x w", data, (outside * groups, inside, *window), group=groups)
    )


@st.composite
def products(draw: st.DrawFn) -> Made:
    m, k, n = draw(sizes), draw(sizes), draw(sizes)
    if draw(st.booleans()):
        left, right = draw(st.integers(0, 1)), draw(st.integers(0, 1))
        shape_a, shape_b = ((k, m) if left else (m, k)), ((n, k) if right else (k, n))
        given = {"transA": left, "transB": right, "alpha": 0.5, "beta": 2.0}
        if draw(st.booleans()):
            return make_layer("Gemm", "x w zero", shape_a, shape_b, **given)
        return make_layer("Gemm", "w x zero", shape_b, shape_a, **given)
    front, batch = (1,) * draw(st.integers(0, 2)), (2,) * draw(st.integers(0, 2))
    if draw(st.booleans()):
        return make_layer("MatMul", "x w", (*batch, m, k), (*front, k, n))
    return make_layer("MatMul", "w x", (*batch, k, n), (*front, m, k))


def scale_weight(proto: ModelProto, axis: int, factors: np.ndarray[Any, Any]) -> ModelProto:
    scaled = ModelProto()
    scaled.CopyFrom(proto)
    tensor = scaled.graph.initializer[0]
    shape = [-1 if position == axis else 1 for position in range(len(tensor.dims))]
    values = np.frombuffer(tensor.raw_data, np.float32).reshape(tuple(tensor.dims))
    tensor.raw_data = (values * factors.reshape(shape)).astype(np.float32).tobytes()
    return scaled


@settings(max_examples=60, deadline=None)
@given(st.one_of(convolutions(), products()))
def test_a_scale_along_the_axis_can_be_taken_out_of_the_sum(made: Made) -> None:
    """Scaling the weight along its axis scales output channels, each by one factor."""
    proto, shape = made
    layer = describe(proto)
    assert not layer.obstacle
    assert layer.axis is not None
    assert layer.weight is not None
    feeds = {"x": random_array(*shape, seed=2)}
    factors = 2.0 ** np.arange(layer.weight.dims[layer.axis])
    plain = run_plainly(proto, feeds)[0]
    scaled = run_plainly(scale_weight(proto, layer.axis, factors), feeds)[0]
    is_convolution = layer.node.op_type.startswith("Conv")
    channel = 1 if is_convolution else (plain.ndim - 1 if layer.weight_slot == 1 else -2)
    channel %= plain.ndim
    along = [-1 if position == channel else 1 for position in range(plain.ndim)]
    np.testing.assert_allclose(scaled, plain * factors.reshape(along), rtol=1e-4, atol=1e-4)
    assert scaled.shape[channel] == len(factors)


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (make_layer("ConvTranspose", "x w", (1, 4, 5), (4, 3, 2), group=2), "repeats 2x"),
        (make_layer("MatMul", "x w", (3, 2, 4), (3, 4, 5)), "a batch of matrices"),
        (make_layer("MatMul", "x w", (2, 4), (4,)), "a vector"),
        (make_layer("MatMul", "w x", (4, 2), (4,)), "a vector"),
    ],
)
def test_where_there_is_no_such_axis_one_scale_serves_all(made: Made, reason: str) -> None:
    layer = describe(made[0])
    assert layer.axis is None
    assert layer.axis_reason.startswith("one scale for the whole weight")
    assert reason in layer.axis_reason
    assert not layer.obstacle


def test_an_axis_that_a_damaged_weight_lacks_is_an_obstacle() -> None:
    proto, _ = make_layer("ConvTranspose", "x w", (1, 4, 5), (4,))
    assert describe(proto).obstacle == "its weight 'w' of shape [4] has no axis 1"
