from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from tests.builders import (
    BFLOAT16,
    BOOL,
    FLOAT,
    FLOAT16,
    INT64,
    branch_model,
    chain,
    constant,
    find_node,
    graph,
    loaded,
    loop_model,
    model,
    op,
    random_array,
    value,
)
from tests.precision.typed_models import (
    count_casts,
    describe_io,
    operand_types,
    relative_error,
    run_ort,
    run_reference,
    type_model,
    types_of,
)
from trtdeploy.config.recipe import RECIPES
from trtdeploy.core.dtypes import DType
from trtdeploy.precision.typed_model import apply_recipe
from trtdeploy.precision.typing_options import TypingOptions

FP16, FP32 = DType.FLOAT16, DType.FLOAT32
X = {"x": random_array(2, 4, seed=9)}
FLAGGED = [{**X, "flag": np.array(flag)} for flag in (True, False)]
W = constant("w", random_array(4, 4))


def assert_close(typed: ModelProto, source: ModelProto, feeds: dict[str, np.ndarray] = X) -> None:
    expected = run_ort(source, feeds)
    for run in (run_ort, run_reference):
        for found, right in zip(run(typed, feeds), expected, strict=True):
            assert found.dtype == right.dtype
            assert relative_error(found, right) < 5e-3


def test_a_value_is_cast_once_for_all_its_readers(tmp_path: Path) -> None:
    source = model(
        [
            op("Relu", "x", "r"),
            op("Exp", "r", "a", "pin_a"),
            op("Abs", "r", "b", "pin_b"),
            op("Neg", "r", "c"),
            op("Sum", "a b c", "y"),
        ],
        [value("x")],
        [value("y")],
    )
    _, typed = type_model(source, tmp_path, pins=["pin_*"])
    casts = [n for n in typed.graph.node if n.op_type == "Cast"]
    assert sorted(n.output[0] for n in casts) == ["a_fp16", "b_fp16", "r_fp32", "x_fp16", "y"]
    assert_close(typed, source)


def test_casts_follow_their_producer(tmp_path: Path) -> None:
    source = chain(["Relu", "Softmax", "Relu"])
    _, typed = type_model(source, tmp_path)
    assert [n.op_type for n in typed.graph.node] == [
        "Cast", "Relu", "Cast", "Softmax", "Cast", "Relu", "Cast",
    ]  # fmt: skip


@pytest.mark.parametrize("pin", ["narrow_branch", "wide_branch"])
@pytest.mark.parametrize("feeds", FLAGGED, ids=["then", "else"])
def test_branches_that_capture_one_value_at_two_precisions(
    pin: str, feeds: dict[str, np.ndarray], tmp_path: Path
) -> None:
    source = branch_model(
        [op("MatMul", "h w", "t", "narrow_branch")],
        [op("Exp", "h", "e", "wide_branch")],
        before=[op("Relu", "x", "h")],
        after=[op("Neg", "p", "y")],
        constants=[W],
    )
    _, typed = type_model(source, tmp_path, pins=[pin])
    assert operand_types(typed, pin)[0] is FP32
    assert count_casts(typed)["FLOAT"] == 2  # h for the pinned node, y
    assert_close(typed, source, feeds)


@pytest.mark.parametrize("feeds", FLAGGED, ids=["then", "else"])
def test_branches_that_disagree_are_brought_to_one_type(
    feeds: dict[str, np.ndarray], tmp_path: Path
) -> None:
    source = branch_model(
        [op("Softmax", "x", "t")], [op("Neg", "x", "e")], after=[op("Relu", "p", "y")]
    )
    _, typed = type_model(source, tmp_path)
    for attribute in find_node(typed, "p").attribute:
        assert attribute.g.output[0].type.tensor_type.elem_type == FLOAT16
    assert_close(typed, source, feeds)


def test_a_branch_of_fp32_values_between_fp32_nodes_stays_fp32(tmp_path: Path) -> None:
    """A variance beyond FP16's range must not be squeezed through the border of the If."""
    source = branch_model(
        [op("Identity", "ms", "t")],
        [op("Add", "ms eps", "e")],
        before=[op("Mul", "x x", "sq"), op("ReduceMean", "sq", "ms", axes=[-1])],
        after=[op("Sqrt", "p", "rms"), op("Div", "x rms", "y")],
        constants=[constant("eps", 1e-5)],
    )
    _, typed = type_model(source, tmp_path)
    for feeds in FLAGGED:
        wide = {**feeds, "x": feeds["x"] * 1e4}
        assert_close(typed, source, wide)


def test_a_pinned_if_gives_fp32(tmp_path: Path) -> None:
    source = branch_model(
        [op("Neg", "x", "t")], [op("Relu", "x", "e")], after=[op("Neg", "p", "y")]
    )
    _, typed = type_model(source, tmp_path, pins=["p"])
    for attribute in find_node(typed, "p").attribute:
        assert attribute.g.output[0].type.tensor_type.elem_type == FLOAT
    assert operand_types(typed, "t") == [FP16]
    for feeds in FLAGGED:
        assert_close(typed, source, feeds)


def test_nested_branches(tmp_path: Path) -> None:
    inner = branch_model([op("MatMul", "h w", "t")], [op("Softmax", "h", "e")]).graph.node[0]
    inner.name, inner.output[0] = "inner", "t"
    source = branch_model(
        [inner],
        [op("Abs", "x", "e", "outer_else")],
        before=[op("Relu", "x", "h")],
        constants=[W],
    )
    then_graph = find_node(source, "pick").attribute[0].g
    for attribute, name in zip(then_graph.node[0].attribute, ("t1", "t2"), strict=True):
        attribute.g.output[0].name = attribute.g.node[0].output[0] = name
    _, typed = type_model(source, tmp_path)
    for feeds in FLAGGED:
        assert_close(typed, source, feeds)


def test_the_state_of_a_loop_stays_fp32_around_a_narrow_body(tmp_path: Path) -> None:
    source = loop_model(
        [op("MatMul", "s w", "m"), op("Add", "m x", "a"), op("Tanh", "a", "s_next")], [W]
    )
    _, typed = type_model(source, tmp_path)
    body = find_node(typed, "repeat").attribute[0].g
    assert operand_types(typed, "m") == [FP16, FP16]
    assert [v.type.tensor_type.elem_type for v in body.input] == [INT64, BOOL, FLOAT]
    assert [v.type.tensor_type.elem_type for v in body.output] == [BOOL, FLOAT]
    assert_close(typed, source)


def test_state_that_a_loop_passes_on_unchanged(tmp_path: Path) -> None:
    source = loop_model([op("Neg", "s", "unused_n")], [])
    body = source.graph.node[0].attribute[0].g
    body.output[1].CopyFrom(value("s"))
    body.node.append(op("Relu", "unused_n", "collected"))
    body.output.append(value("collected"))
    source.graph.node[0].output.append("stack")
    source.graph.output.append(value("stack", (3, "N", 4)))
    _, typed = type_model(source, tmp_path)
    for found, right in zip(run_ort(typed, X), run_ort(source, X), strict=True):
        assert relative_error(found, right) < 5e-3


def test_a_scan_keeps_state_and_elements_fp32(tmp_path: Path) -> None:
    body = graph(
        [op("Mul", "e gain", "g"), op("Add", "s g", "s_next"), op("Exp", "g", "out")],
        [value("s", (4,)), value("e", (4,))],
        [value("s_next", (4,)), value("out", (4,))],
    )
    source = model(
        [
            op("Relu", "x", "r"),
            op("Scan", "start r", "final all", "scan", body=body, num_scan_inputs=1),
            op("Neg", "all", "y"),
        ],
        [value("x")],
        [value("final", (4,)), value("y")],
        [constant("start", np.zeros(4)), constant("gain", [0.5])],
    )
    _, typed = type_model(source, tmp_path)
    assert operand_types(typed, "scan") == [FP32, FP32]
    assert operand_types(typed, "g") == [FP16, FP16]
    assert_close(typed, source)


@pytest.mark.parametrize("keep_io", [True, False])
@pytest.mark.parametrize("pins", [(), ("producer",), ("reader_*",), ("producer", "reader_1")])
def test_an_output_that_the_graph_reads_too(
    keep_io: bool, pins: tuple[str, ...], tmp_path: Path
) -> None:
    source = model(
        [
            op("MatMul", "x w", "middle", "producer"),
            op("Exp", "middle", "a", "reader_1"),
            op("Neg", "middle", "b", "reader_2"),
            op("Add", "a b", "y"),
        ],
        [value("x")],
        [value("middle"), value("y")],
        [W],
    )
    _, typed = type_model(source, tmp_path, pins=pins, keep_io=keep_io)
    kind, feeds = (np.float32, X) if keep_io else (np.float16, {"x": X["x"].astype(np.float16)})
    for found, right in zip(run_ort(typed, feeds), run_ort(source, X), strict=True):
        assert found.dtype == kind
        assert relative_error(found, right) < 5e-3


@pytest.mark.parametrize("keep_io", [True, False])
def test_an_output_that_a_branch_reads_too(keep_io: bool, tmp_path: Path) -> None:
    source = branch_model(
        [op("Exp", "h", "t", "wide_reader")], [op("Neg", "h", "e")], before=[op("Relu", "x", "h")]
    )
    source.graph.output.append(value("h"))
    _, typed = type_model(source, tmp_path, pins=["wide_reader"], keep_io=keep_io)
    assert [name for name, _ in describe_io(typed)] == ["x", "flag", "y", "h"]
    if keep_io:
        for feeds in FLAGGED:
            assert_close(typed, source, feeds)


@pytest.mark.parametrize("keep_io", [True, False])
def test_outputs_that_no_node_computes(keep_io: bool, tmp_path: Path) -> None:
    source = model(
        [op("MatMul", "x w", "y")], [value("x")], [value("w", (4, 4)), value("x"), value("y")], [W]
    )
    _, typed = type_model(source, tmp_path, keep_io=keep_io)
    kind = FLOAT if keep_io else FLOAT16
    assert describe_io(typed) == [("x", kind), ("w", FLOAT), ("x", kind), ("y", kind)]
    assert operand_types(typed, "y") == [FP16, FP16]
    if keep_io:
        assert_close(typed, source)


@pytest.mark.parametrize("recipe", ["fp16", "bf16"])
def test_narrow_inputs_and_outputs_on_request(recipe: str, tmp_path: Path) -> None:
    source = chain(["MatMul:w", "Softmax", "Relu"], constants=[W])
    _, typed = type_model(source, tmp_path, recipe, keep_io=False)
    kind = {"fp16": FLOAT16, "bf16": BFLOAT16}[recipe]
    assert describe_io(typed) == [("x", kind), ("y", kind)]
    assert sum(count_casts(typed).values()) == 2  # around the Softmax


def test_an_fp32_result_is_narrowed_when_outputs_are(tmp_path: Path) -> None:
    source = chain(["MatMul:w", "Softmax"], constants=[W])
    _, typed = type_model(source, tmp_path, keep_io=False)
    assert describe_io(typed) == [("x", FLOAT16), ("y", FLOAT16)]
    assert types_of(typed)["y_fp32"] is FP32


def test_integer_outputs_and_inputs_stay(tmp_path: Path) -> None:
    source = model(
        [op("Gather", "x i", "g"), op("Relu", "g", "r"), op("ArgMax", "r", "y", axis=-1)],
        [value("x"), value("i", (2,), INT64)],
        [value("y", (2, 1), INT64)],
    )
    _, typed = type_model(source, tmp_path, keep_io=False)
    assert describe_io(typed) == [("x", FLOAT16), ("i", INT64), ("y", INT64)]


TAKEN = ["x_fp16", "x_fp16_cast", "w_fp16", "y_fp16", "y_cast", "r_fp32", "x_fp16_2"]


def test_new_names_avoid_names_that_look_generated(tmp_path: Path) -> None:
    nodes = [op("Relu", "x", TAKEN[0], "w_fp16_2_cast")]
    nodes += [op("Relu", old, new, new) for old, new in pairwise(TAKEN)]
    nodes += [
        op("MatMul", f"{TAKEN[-1]} w", "r"),
        op("Softmax", "r", "s"),
        op("Sum", "s r x", "y"),
    ]
    source = model(nodes, [value("x")], [value("y")], [W])
    _, typed = type_model(source, tmp_path)
    assert {"x_fp16_3", "w_fp16_2", "y_fp16_2", "r_fp32_2"} <= types_of(typed).keys()
    assert_close(typed, source)


def test_a_constant_is_converted_once_per_type(tmp_path: Path) -> None:
    source = model(
        [
            op("MatMul", "x w", "a"),
            op("MatMul", "a w", "b"),
            op("MatMul", "b w", "c", "pinned"),
            op("MatMul", "c w", "y"),
        ],
        [value("x")],
        [value("y")],
        [W],
    )
    _, typed = type_model(source, tmp_path, pins=["pinned"])
    assert [t.name for t in typed.graph.initializer] == ["w", "w_fp16"]
    assert_close(typed, source)


def test_streamed_and_inline_constants_become_the_same_bits(tmp_path: Path) -> None:
    large = random_array(4, 2000)
    large[0, :5] = [1e-8, 65519, -1e9, np.inf, np.nan]
    source = model(
        [op("Mul", "x large", "a"), op("Mul", "b small", "c")],
        [value("x", (4, 2000)), value("b", (4, 5))],
        [value("a", (4, 2000)), value("c", (4, 5))],
        [constant("large", large), constant("small", large[:, :5])],
    )
    _, typed = type_model(source, tmp_path, pins=[])
    kept = {t.name: numpy_helper.to_array(t) for t in typed.graph.initializer}
    assert set(kept) == {"large", "small"}  # -1e9 keeps both
    large[0, 2] = -1e4
    source.graph.initializer[0].CopyFrom(constant("large", large))
    source.graph.initializer[1].CopyFrom(constant("small", large[:, :5]))
    _, typed = type_model(source, tmp_path)
    kept = {t.name: numpy_helper.to_array(t) for t in typed.graph.initializer}
    for name, right in (("large_fp16", large), ("small_fp16", large[:, :5])):
        assert kept[name].tobytes() == right.astype(np.float16).tobytes()


@pytest.mark.parametrize("mask", [-1e12, [[0.0, -1e9, 1.0, -3e38]]])
def test_a_clamped_constant_keeps_everything_in_range(mask: float, tmp_path: Path) -> None:
    source = model(
        [op("Where", "seen x mask", "m"), op("Softmax", "m", "p"), op("MatMul", "p w", "y")],
        [value("x"), value("seen", ("N", 4), BOOL)],
        [value("y")],
        [constant("mask", mask), W],
    )
    _, typed = type_model(source, tmp_path)
    clamped = next(t for t in typed.graph.initializer if t.name == "mask_fp16")
    assert np.array_equal(
        numpy_helper.to_array(clamped), np.maximum(mask, -28658.0).astype(np.float16)
    )


def test_a_streamed_mask_is_clamped_too(tmp_path: Path) -> None:
    mask = np.triu(np.full((60, 60), -1e9, np.float32), 1)
    source = model(
        [op("Where", "seen x mask", "m"), op("Softmax", "m", "p"), op("MatMul", "p x", "y")],
        [value("x", (60, 60)), value("seen", (60, 60), BOOL)],
        [value("y", (60, 60))],
        [constant("mask", mask)],
    )
    _, typed = type_model(source, tmp_path)
    clamped = numpy_helper.to_array(typed.graph.initializer[0])
    assert (clamped.min(), clamped.max()) == (np.float16(-28658), 0)


@pytest.mark.parametrize("recipe", ["fp16", "bf16"])
@pytest.mark.parametrize("given", [None, 1.5, 1e-9])
def test_filled_shapes_follow(recipe: str, given: float | None, tmp_path: Path) -> None:
    attributes = {} if given is None else {"value": constant("", [given])}
    source = model(
        [
            op("Shape", "x", "s"),
            op("ConstantOfShape", "s", "f", **attributes),
            op("Add", "x f", "y"),
        ],
        [value("x")],
        [value("y")],
    )
    _, typed = type_model(source, tmp_path, recipe)
    assert types_of(typed)["f"] in (FP16, DType.BFLOAT16)


def test_a_filled_shape_of_integers_stays(tmp_path: Path) -> None:
    sevens = helper.make_tensor("", TensorProto.INT64, [1], [7])
    source = model(
        [
            op("Shape", "x", "s"),
            op("ConstantOfShape", "s", "f", value=sevens),
            op("Cast", "f", "c", to=FLOAT),
            op("Add", "x c", "y"),
        ],
        [value("x")],
        [value("y")],
    )
    _, typed = type_model(source, tmp_path)
    assert types_of(typed)["f"] is DType.INT64
    assert_close(typed, source)


@pytest.mark.parametrize(
    "nodes",
    [
        [op("Constant", "", "y", value_floats=[1.0, 2.0])],
        [op("Constant", "", "c", value=constant("", [1.0, 2.0])), op("Add", "x c", "y")],
    ],
    ids=["output", "inside"],
)
def test_constant_nodes(nodes: list[NodeProto], tmp_path: Path) -> None:
    source = model(nodes, [value("x", (2,))], [value("y", (2,))])
    _, typed = type_model(source, tmp_path)
    assert_close(typed, source, {"x": np.ones(2, np.float32)})


def test_a_constant_output_that_others_read(tmp_path: Path) -> None:
    source = model(
        [op("Constant", "", "c", value_floats=[0.1, 2.0]), op("Add", "x c", "y")],
        [value("x", (2,))],
        [value("c", (2,)), value("y", (2,))],
    )
    _, typed = type_model(source, tmp_path)
    assert_close(typed, source, {"x": np.ones(2, np.float32)})


def test_cast_like_follows_its_example(tmp_path: Path) -> None:
    source = model(
        [op("CastLike", "i x", "c"), op("MatMul", "x w", "m"), op("Add", "c m", "y")],
        [value("x"), value("i", ("N", 4), INT64)],
        [value("y")],
        [W],
    )
    _, typed = type_model(source, tmp_path)
    assert types_of(typed)["c"] is FP16
    assert_close(typed, source, {**X, "i": np.arange(8).reshape(2, 4)})


def test_sequences_and_optionals_stay_fp32(tmp_path: Path) -> None:
    source = model(
        [
            op("MatMul", "x w", "m"),
            op("SequenceConstruct", "m x", "s"),
            op("SequenceAt", "s zero", "a"),
            op("Relu", "a", "y"),
        ],
        [value("x")],
        [value("y")],
        [W, constant("zero", 0, np.int64)],
    )
    _, typed = type_model(source, tmp_path)
    assert operand_types(typed, "s") == [FP32, FP32]
    assert operand_types(typed, "m") == [FP16, FP16]
    assert_close(typed, source)


def test_a_sequence_mapped_over_stays_fp32_outside(tmp_path: Path) -> None:
    body = graph([op("MatMul", "e w", "r")], [value("e")], [value("r")])
    source = model(
        [
            op("SequenceConstruct", "x x", "s"),
            op("SequenceMap", "s", "mapped", "map", body=body),
            op("ConcatFromSequence", "mapped", "y", axis=0),
        ],
        [value("x")],
        [value("y", ("M", 4))],
        [W],
    )
    _, typed = type_model(source, tmp_path)
    assert operand_types(typed, "r") == [FP16, FP16]
    assert find_node(typed, "map").attribute[0].g.output[0].type.tensor_type.elem_type == FLOAT


def test_unknown_operators_get_what_they_got(tmp_path: Path) -> None:
    source = model(
        [
            op("MatMul", "x w", "m"),
            op("FastGelu", "m", "g", "custom", domain="com.microsoft"),
            op("MatMul", "g w", "y"),
        ],
        [value("x")],
        [value("y")],
        [W],
        domains=["com.microsoft"],
    )
    _, typed = type_model(source, tmp_path)
    assert operand_types(typed, "custom") == [FP32]
    source.graph.value_info.append(value("g"))
    _, typed = type_model(source, tmp_path)
    assert operand_types(typed, "y") == [FP16, FP16]


def test_values_whose_type_nobody_knows_are_not_touched(tmp_path: Path) -> None:
    source = model(
        [
            op("FastGelu", "x", "g", domain="com.microsoft"),
            op("Relu", "g", "r"),
            op("MatMul", "r w", "y"),
        ],
        [value("x")],
        [value("y")],
        [W],
        domains=["com.microsoft"],
    )
    result, _ = type_model(source, tmp_path)
    assert result.plan.count_by_dtype() == {"float32": 2}


def test_two_equal_names_in_two_branches(tmp_path: Path) -> None:
    """ONNX asks for unique names over branches; TensorFlow exports repeat them all the same."""
    source = branch_model(
        [op("MatMul", "x c", "t")],
        [op("MatMul", "x c", "e")],
        inner_constants=(
            [constant("c", random_array(4, 4, seed=1))],
            [constant("c", random_array(4, 4, seed=2))],
        ),
    )
    _, typed = type_model(source, tmp_path)
    for feeds in FLAGGED:
        assert_close(typed, source, feeds)


@pytest.mark.parametrize("recipe", ["fp32", "tf32"])
def test_wide_recipes_change_no_type(recipe: str, tmp_path: Path) -> None:
    source = chain(["MatMul:w", "Softmax", "Relu"], constants=[W])
    result, typed = type_model(source, tmp_path, recipe)
    assert typed.SerializeToString(deterministic=True) == source.SerializeToString(
        deterministic=True
    )
    assert result.plan.count_by_dtype() == {"float32": 3}


def test_typing_is_repeatable(tmp_path: Path) -> None:
    source = branch_model(
        [op("MatMul", "h w", "t")], [op("Exp", "h", "e")], before=[op("Relu", "x", "h")],
        constants=[W],
    )  # fmt: skip
    first = type_model(source, tmp_path)[1].SerializeToString(deterministic=True)
    assert type_model(source, tmp_path)[1].SerializeToString(deterministic=True) == first


def test_the_given_model_is_not_changed(tmp_path: Path) -> None:
    found = loaded(chain(["MatMul:w"], constants=[constant("w", random_array(4, 4))]), tmp_path)
    before = found.proto.SerializeToString(deterministic=True)
    apply_recipe(found, TypingOptions(RECIPES["fp16"]))
    assert found.proto.SerializeToString(deterministic=True) == before
    assert not found.changes
