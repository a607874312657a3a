"""What a file declares of its outputs."""

from __future__ import annotations

import itertools

import pytest
from onnx import ModelProto

from tests.builders import constant, in_memory, model, op, random_array, value
from trtdeploy.core.dtypes import DType
from trtdeploy.core.tensors import SizeRule, TensorSpec
from trtdeploy.export.output_shapes import choose_probes, declare_outputs

IMAGE = ("batch", 3, "height", "width")


def strided() -> ModelProto:
    nodes = [op("Conv", "x w", "y", strides=[2, 2], pads=[1, 1, 1, 1])]
    weights = [constant("w", random_array(4, 3, 3, 3))]
    return model(nodes, [value("x", IMAGE)], [value("y", (1, 1, 1, 1))], weights)


def pointwise() -> ModelProto:
    nodes = [op("Conv", "x w", "y")]
    weights = [constant("w", random_array(4, 3, 1, 1))]
    return model(nodes, [value("x", IMAGE)], [value("y", None)], weights)


def doubled() -> ModelProto:
    return model([op("Concat", "x x", "y", axis=0)], [value("x", IMAGE)], [value("y", None)])


def pooled() -> ModelProto:
    return model([op("GlobalAveragePool", "x", "y")], [value("x", IMAGE)], [value("y", None)])


@pytest.mark.parametrize(
    ("proto", "shape"),
    [
        (strided(), ("batch", 4, "y_2", "y_3")),
        (pointwise(), ("batch", 4, "height", "width")),
        (doubled(), ("y_0", 3, "height", "width")),
        (pooled(), ("batch", 3, 1, 1)),
    ],
    ids=["strided", "pointwise", "doubled", "pooled"],
)
def test_a_size_gets_the_symbol_that_it_follows(
    proto: ModelProto, shape: tuple[int | str, ...]
) -> None:
    edited = in_memory(proto)
    declare_outputs(edited)
    assert edited.output_specs()[0].shape == shape


def test_a_wrong_declaration_is_named() -> None:
    (sentence,) = declare_outputs(in_memory(strided()))
    assert "['batch', 4, 'y_2', 'y_3'], as it is computed; it was [1, 1, 1, 1]" in sentence


@pytest.mark.parametrize("sizes", [(64, 64), (64, 96), (128, 32)])
def test_what_a_run_happens_to_give_is_no_rule(sizes: tuple[int, int]) -> None:
    """Sizes of the user's choosing may look alike, and like numbers of the model."""
    height, width = sizes
    point = {"batch": 2, "height": height, "width": width}
    edited = in_memory(strided())
    declare_outputs(edited, observed={"y": [(point, (2, 4, height // 2, width // 2))]})
    assert edited.output_specs()[0].shape == ("batch", 4, "y_2", "y_3")


def test_a_run_takes_back_what_it_contradicts() -> None:
    edited = in_memory(pointwise())
    point = {"batch": 2, "height": 64, "width": 96}
    declare_outputs(edited, observed={"y": [(point, (2, 4, 64, 95))]})
    assert edited.output_specs()[0].shape == ("batch", 4, "height", "y_3")


def test_a_run_gives_the_rank_that_inference_does_not_know() -> None:
    nodes = [op("Shape", "x", "s"), op("Abs", "s", "t"), op("Reshape", "x t", "y")]
    edited = in_memory(model(nodes, [value("x", ("batch", 4))], [value("y", None)]))
    edited.graph.node[1].domain = "acme"
    edited.proto.opset_import.add(domain="acme", version=1)
    declare_outputs(edited, observed={"y": [({"batch": 2}, (2, 4))]})
    assert edited.output_specs()[0].shape == ("y_0", "y_1")


@pytest.mark.parametrize(
    "rule",
    [
        SizeRule("height"),
        SizeRule("height", 32, 32),
        SizeRule("height", 32, 1024),
        SizeRule("height", 1, 1, 77),
        SizeRule("height", 14, 14, 518),
    ],
    ids=str,
)
def test_probes_obey_rules_and_tell_symbols_apart(rule: SizeRule) -> None:
    points = choose_probes([TensorSpec("x", DType.FLOAT32, IMAGE)], [rule])
    assert all(rule.accepts(point["height"]) for point in points)
    for left, right in itertools.permutations(points[0], 2):
        sizes = [point[right] for point in sorted(points, key=lambda point: point[left])]
        assert len(set(sizes)) == 3
        assert sizes != sorted(sizes), f"{right} grows with {left}"
