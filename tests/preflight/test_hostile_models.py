"""Models that break every rule give findings, never an exception and never a crash."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, helper

from tests.builders import INT64, chain, constant, in_memory, model, op, value
from tests.preflight import models
from tests.preflight.sound_models import HEALTHY, dynamic_flatten
from trtdeploy.config.recipe import RECIPES
from trtdeploy.core.ranges import OptimizationProfile, ShapeRange, ValueRange
from trtdeploy.graph.model import walk_graphs
from trtdeploy.preflight.checking import check_model
from trtdeploy.preflight.target import CheckTarget

TARGETS = (
    CheckTarget("tensorrt_rtx", "1.7.1"),
    CheckTarget("tensorrt", "8.6"),
    CheckTarget("tensorrt", None, RECIPES["int8"]),
    CheckTarget("onnxruntime"),
    CheckTarget("nonsense", "x.y"),
)
SOURCES = (
    models.unknown_operators, models.string_branch, models.uint8_inside, models.shape_tensor_input,
    models.class_token, models.recursive_function, models.local_function, models.normalization,
    models.convolution, models.quantized, dynamic_flatten, *HEALTHY.values(),
)  # fmt: skip
NAMES = ("", "x", "y", "#1", "#0__1", "a\n(op_type:Add, node name: #1): boo", "\0", "labels")
OPERATORS = (
    "Reshape", "Conv", "Dropout", "If", "Loop", "QuantizeLinear", "Cast", "TopK", "Split",
    "Constant", "GatherND", "EyeLike", "Upsample", "Resize", "BatchNormalization", "",
)  # fmt: skip
NUMBERS = (-(1 << 60), -5, -1, 0, 1, 7, 90, 1 << 40)


def damage(proto: ModelProto, pick: random.Random) -> None:
    """Change one thing for the worse."""
    graph = pick.choice(list(walk_graphs(proto.graph)))
    if graph.node:
        damage_node(pick.choice(graph.node), pick)
    for values in (graph.input, graph.output):
        if values and pick.random() < 0.2:
            pick.choice(values).ClearField("type")
    for found in graph.input:
        for dim in found.type.tensor_type.shape.dim:
            if pick.random() < 0.1:
                dim.dim_value = pick.choice(NUMBERS)
    if graph.initializer and pick.random() < 0.3:
        tensor = pick.choice(graph.initializer)
        tensor.data_type = pick.randrange(40)
        tensor.dims.append(pick.choice(NUMBERS))
    if proto.opset_import and pick.random() < 0.2:
        proto.opset_import[0].version = pick.choice(NUMBERS)
    if pick.random() < 0.2:
        proto.ir_version = pick.choice(NUMBERS)


def damage_node(node: NodeProto, pick: random.Random) -> None:
    changes: tuple[Callable[[], object], ...] = (
        lambda: node.ClearField("input"),
        lambda: node.ClearField("output"),
        lambda: node.ClearField("attribute"),
        lambda: node.input.append(pick.choice(NAMES)),
        lambda: node.output.append(pick.choice(NAMES)),
        lambda: setattr(node, "op_type", pick.choice(OPERATORS)),
        lambda: setattr(node, "domain", pick.choice(("", "ai.onnx", "com.microsoft", "x"))),
        lambda: add_attribute(node, pick),
    )
    pick.choice(changes)()


def add_attribute(node: NodeProto, pick: random.Random) -> None:
    name = pick.choice(("axis", "perm", "value", "to", "value_ints", "training_mode", "batch_dims",
                        "num_outputs", "body"))  # fmt: skip
    attribute = AttributeProto(name=name, type=pick.randrange(1, 12))  # type: ignore[arg-type]
    attribute.i = pick.choice(NUMBERS)
    attribute.ints.extend(NUMBERS)
    attribute.t.data_type = pick.randrange(20)
    node.attribute.append(attribute)


@settings(max_examples=150)
@example(17993)  # two negative sizes whose product is the number of values
@given(st.integers(0, 1 << 32))
def test_damaged_models_are_survived(seed: int) -> None:
    pick = random.Random(seed)
    proto = pick.choice(SOURCES)()
    for _ in range(pick.randrange(1, 4)):
        damage(proto, pick)
    damaged = in_memory(proto)
    sizes = [
        (spec, tuple(pick.choice(NUMBERS) for _ in spec.shape or ()))
        for spec in damaged.input_specs()
    ]
    profile = OptimizationProfile(
        "p",
        {spec.name: ShapeRange(dims, dims, dims) for spec, dims in sizes},
        {spec.name: ValueRange((1,), (1 << 40,), (-1,)) for spec, _ in sizes},
    )
    report = check_model(damaged, target=pick.choice(TARGETS), optimization_profiles=[profile])
    assert report.to_dict()["counts"] == report.counts


def typed_eye_of_unknown() -> ModelProto:
    nodes = [op("Odd", "x", "t", domain="acme"), op("EyeLike", "t", "y", "eye", dtype=INT64)]
    return model(nodes, [value("x")], [value("y", None, INT64)], domains=["acme"])


def gather_with_negative_batch() -> ModelProto:
    nodes = [op("GatherND", "x i", "y", "gather", batch_dims=-9)]
    return model(nodes, [value("x")], [value("y", None)], [constant("i", [[0]], "int64")])


def split_into_a_trillion() -> ModelProto:
    nodes = [op("Split", "x", "y", "split", num_outputs=1 << 40)]
    return model(nodes, [value("x")], [value("y", None)], opset=18)


def match_of_unknown() -> ModelProto:
    nodes = [op("RegexFullMatch", "ghost", "y", "match", pattern=".")]
    return model(nodes, [], [value("y", None, TensorProto.BOOL)], opset=20)


def enormous_vector() -> ModelProto:
    nodes = [op("Gather", "x i", "y", "gather", axis=0)]
    index = constant("i", [0], "int64")
    return model(nodes, [value("x", (1 << 60,))], [value("y", None)], [index])


def empty_graph() -> ModelProto:
    return helper.make_model(helper.make_graph([], "", [], []))


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (typed_eye_of_unknown, "unknown-operator"),
        (gather_with_negative_batch, "invalid-node"),
        (split_into_a_trillion, "invalid-node"),
        (match_of_unknown, "undefined-value"),
        (enormous_vector, None),
        (empty_graph, None),
    ],
)
def test_what_crashes_onnx_itself_is_kept_from_it(
    make: Callable[[], ModelProto], code: str | None
) -> None:
    codes = {finding.code for finding in check_model(in_memory(make()), target=TARGETS[0]).blockers}
    assert code is None or code in codes


def test_chain_of_a_thousand_nodes_is_no_problem() -> None:
    report = check_model(in_memory(chain(["Relu"] * 1000)), target=TARGETS[0])
    assert (report.node_count, report.findings) == (1000, ())
