"""Problems that users of other converters reported, each with a model of our own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto

from tests.builders import (
    BOOL,
    FLOAT,
    FLOAT16,
    INT64,
    UINT8,
    branch_model,
    chain,
    constant,
    model,
    op,
    random_array,
    value,
)
from tests.precision.typed_models import (
    count_casts,
    operand_types,
    relative_error,
    run_ort,
    run_reference,
    type_model,
    types_of,
)
from trtdeploy.core.dtypes import DType

FP16, FP32 = DType.FLOAT16, DType.FLOAT32
NEAREST = {
    "mode": "nearest",
    "nearest_mode": "floor",
    "coordinate_transformation_mode": "asymmetric",
}


def conditional_detector() -> ModelProto:
    """A stem, then either a convolution or a pool and Resize, inside an If."""
    proto = branch_model(
        [op("Conv", "features wt bt", "t")],
        [
            op("AveragePool", "features", "pooled", kernel_shape=[2, 2], strides=[2, 2]),
            op("Resize", "pooled - scales", "up", "resize", **NEAREST),
            op("Mul", "up gain", "e"),
        ],
        before=[op("Conv", "x w", "features", pads=[1, 1, 1, 1])],
        after=[op("Relu", "p", "a"), op("GlobalAveragePool", "a", "y")],
        constants=[
            constant("w", random_array(4, 3, 3, 3, scale=0.4)),
            constant("gain", random_array(1, 4, 1, 1, seed=1)),
        ],
        inner_constants=(
            [
                constant("wt", random_array(4, 4, 1, 1, seed=2)),
                constant("bt", random_array(4, seed=3)),
            ],
            [constant("scales", [1, 1, 2, 2])],
        ),
    )
    proto.graph.input[0].CopyFrom(value("x", (1, 3, 8, 8)))
    proto.graph.output[0].CopyFrom(value("y", (1, 4, 1, 1)))
    return proto


@pytest.mark.parametrize("flag", [True, False])
def test_both_branches_of_an_if_stay_right(flag: bool, tmp_path: Path) -> None:
    source = conditional_detector()
    _, typed = type_model(source, tmp_path)
    feeds = {"x": random_array(1, 3, 8, 8, seed=4), "flag": np.array(flag)}
    assert relative_error(run_ort(typed, feeds)[0], run_ort(source, feeds)[0]) < 2e-3
    assert relative_error(run_reference(typed, feeds)[0], run_ort(source, feeds)[0]) < 2e-3


def test_inside_a_branch_scales_stay_fp32_and_data_becomes_fp16(tmp_path: Path) -> None:
    _, typed = type_model(conditional_detector(), tmp_path)
    assert operand_types(typed, "resize") == [FP16, DType.UNDEFINED, FP32]
    assert operand_types(typed, "t") == [FP16, FP16, FP16]
    assert types_of(typed)["flag"] is DType.BOOL
    assert count_casts(typed) == {"FLOAT16": 1, "FLOAT": 1}


def shared_constants() -> ModelProto:
    """``k`` is a gain and the scales of a Resize; ``w`` is read by two MatMuls."""
    return model(
        [
            op("Mul", "x k", "g"),
            op("Resize", "g - k", "up", "resize", **NEAREST),
            op("MatMul", "up w", "h", "first"),
            op("Relu", "h", "r"),
            op("MatMul", "r w", "y", "second"),
        ],
        [value("x", ("N", 2, 4, 4))],
        [value("y", ("N", 2, 8, 8))],
        [constant("k", [1, 1, 2, 2]), constant("w", random_array(8, 8, scale=0.4))],
    )


@pytest.mark.parametrize("pins", [(), ("second",)])
def test_a_constant_read_at_two_precisions_exists_in_both(
    pins: tuple[str, ...], tmp_path: Path
) -> None:
    source = shared_constants()
    _, typed = type_model(source, tmp_path, pins=pins)
    assert operand_types(typed, "resize") == [FP16, DType.UNDEFINED, FP32]
    assert operand_types(typed, "first") == [FP16, FP16]
    assert operand_types(typed, "second") == ([FP32, FP32] if pins else [FP16, FP16])
    feeds = {"x": random_array(2, 2, 4, 4, seed=5)}
    assert relative_error(run_ort(typed, feeds)[0], run_ort(source, feeds)[0]) < 1.4e-3
    converted = {t.name for t in typed.graph.initializer}
    assert converted == {"k", "k_fp16", "w_fp16", *(["w"] if pins else [])}


def typed_by_attribute() -> ModelProto:
    return model(
        [
            op("Cast", "ids", "ids_f", to=FLOAT),
            op("Mul", "ids_f small", "ids_s"),
            op("Greater", "x zero", "positive"),
            op("Cast", "positive", "mask", to=FLOAT),
            op("RandomNormalLike", "x", "noise", dtype=FLOAT, seed=7.0),
            op("Mul", "noise zero", "silence"),
            op("Shape", "x", "shape"),
            op("ConstantOfShape", "shape", "filled", value=constant("", [1.5])),
            op("ConstantOfShape", "shape", "zeros"),
            op("EyeLike", "x", "eye", dtype=FLOAT),
            op("Mul", "x mask", "a0"),
            op("Add", "a0 silence", "a1"),
            op("Add", "a1 filled", "a2"),
            op("Add", "a2 zeros", "a3"),
            op("Add", "a3 eye", "a4"),
            op("MatMul", "a4 w", "a5"),
            op("Add", "a5 ids_s", "y"),
        ],
        [value("x", (8, 8)), value("ids", (8, 8), INT64)],
        [value("y", (8, 8))],
        [constant("small", 0.01), constant("zero", 0.0), constant("w", random_array(8, 8))],
    )


def test_types_written_in_attributes_follow(tmp_path: Path) -> None:
    source = typed_by_attribute()
    result, typed = type_model(source, tmp_path)
    feeds = {
        "x": random_array(8, 8, seed=1),
        "ids": np.random.default_rng(2).integers(0, 100, (8, 8)),
    }
    assert relative_error(run_ort(typed, feeds)[0], run_ort(source, feeds)[0]) < 1e-3
    types = types_of(typed)
    assert types["mask"] is types["filled"] is types["zeros"] is FP16
    assert types["noise"] is types["eye"] is FP32
    assert types["ids"] is DType.INT64
    assert any("'noise' is random" in note for note in result.plan.notes)


def masked_attention() -> ModelProto:
    weight = random_array(16, 16, scale=0.3, seed=3)
    weight[0, 0] = 9e4
    return model(
        [
            op("MatMul", "x wq", "q"),
            op("MatMul", "x wk", "k"),
            op("Transpose", "k", "kt", perm=[0, 2, 1]),
            op("MatMul", "q kt", "s0"),
            op("Mul", "s0 quarter", "s1"),
            op("Cast", "mask", "mask_f", to=FLOAT),
            op("Sub", "one mask_f", "inverse"),
            op("Mul", "inverse far_below", "bias"),
            op("Unsqueeze", "bias axis", "bias3"),
            op("Add", "s1 bias3", "s2"),
            op("Softmax", "s2", "p", axis=-1),
            op("MatMul", "p x", "context"),
            op("Min", "context no_bound", "bounded"),
            op("Mul", "bounded small", "scaled"),
            op("MatMul", "scaled wide", "y"),
        ],
        [value("x", ("B", "S", 16)), value("mask", ("B", "S"), INT64)],
        [value("y", ("B", "S", 16))],
        [
            constant("wq", random_array(16, 16, scale=0.25, seed=1)),
            constant("wk", random_array(16, 16, scale=0.25, seed=2)),
            constant("wide", weight),
            constant("quarter", 0.25),
            constant("one", 1.0),
            constant("far_below", -1e12),
            constant("no_bound", np.inf),
            constant("small", 1e-3),
            constant("axis", [1], np.int64),
        ],
    )


def test_added_masks_and_wide_weights_stay_fp32(tmp_path: Path) -> None:
    source = masked_attention()
    result, typed = type_model(source, tmp_path)
    mask = np.ones((3, 6), np.int64)
    mask[1, 4:] = 0
    mask[2] = 0
    feeds = {"x": random_array(3, 6, 16, seed=4), "mask": mask}
    for run in (run_ort, run_reference):
        found = run(typed, feeds)[0]
        assert np.isfinite(found).all()
        assert relative_error(found, run_ort(source, feeds)[0]) < 0.01
    assert operand_types(typed, "y") == [FP32, FP32]
    decisions = {c.name: (c.action, float(c.value)) for c in result.plan.constants}
    assert decisions == {
        "far_below": ("keep", pytest.approx(-1e12)),
        "wide": ("keep", pytest.approx(9e4)),
    }
    assert operand_types(typed, "p") == [FP32]
    assert operand_types(typed, "context") == [FP16, FP16]
    assert operand_types(typed, "bounded") == [FP16, FP16]


def test_a_mask_that_replaces_scores_is_clamped(tmp_path: Path) -> None:
    source = model(
        [
            op("MatMul", "x w", "s"),
            op("Where", "seen s far_below", "m"),
            op("Softmax", "m", "p", axis=-1),
            op("MatMul", "p w", "y"),
        ],
        [value("x", (3, 4)), value("seen", (3, 4), BOOL)],
        [value("y", (3, 4))],
        [constant("w", random_array(4, 4)), constant("far_below", -1e12)],
    )
    result, typed = type_model(source, tmp_path)
    assert [c.action for c in result.plan.constants] == ["clamp"]
    assert "float32" not in result.plan.count_by_dtype()
    seen = np.array([[1, 1, 1, 1], [1, 0, 1, 0], [0, 0, 0, 0]], bool)
    feeds = {"x": random_array(3, 4, seed=1), "seen": seen}
    for run in (run_ort, run_reference):
        assert relative_error(run(typed, feeds)[0], run_ort(source, feeds)[0]) < 2e-3


def written_out_norms() -> ModelProto:
    return model(
        [
            op("MatMul", "x w_big", "h"),
            op("ReduceMean", "h", "mu", axes=[-1]),
            op("Sub", "h mu", "d"),
            op("Pow", "d two", "d2"),
            op("ReduceMean", "d2", "var", axes=[-1]),
            op("Add", "var eps", "ve"),
            op("Sqrt", "ve", "sd"),
            op("Div", "d sd", "n"),
            op("MatMul", "n w", "layer_norm"),
            op("ReduceL2", "h", "l2", axes=[-1]),
            op("Div", "h l2", "hn"),
            op("MatMul", "hn w", "l2_norm"),
            op("Mul", "h h", "h2"),
            op("ReduceMean", "h2", "ms", axes=[-1]),
            op("Sqrt", "ms", "rms"),
            op("Reciprocal", "rms", "rr"),
            op("Mul", "h rr", "hr"),
            op("MatMul", "hr w", "rms_norm"),
        ],
        [value("x", ("B", 32))],
        [value(name, ("B", 8)) for name in ("layer_norm", "l2_norm", "rms_norm")],
        [
            constant("w_big", random_array(32, 32, scale=90)),
            constant("w", random_array(32, 8, scale=0.3, seed=1)),
            constant("two", 2.0),
            constant("eps", 1e-5),
        ],
    )


def test_norms_that_overflow_are_right_under_fp16_semantics(tmp_path: Path) -> None:
    source = written_out_norms()
    _, typed = type_model(source, tmp_path)
    feeds = {"x": random_array(4, 32, seed=2)}
    expected = run_ort(source, feeds)
    for found, right in zip(run_reference(typed, feeds), expected, strict=True):
        assert relative_error(found, right) < 0.01


def test_without_the_rule_the_reference_shows_the_overflow(tmp_path: Path) -> None:
    """The check above can fail: a square taken in FP16 is infinite there."""
    source = chain(["Mul:big", "Exp", "Log"], constants=[constant("big", 1e3)])
    _, typed = type_model(source, tmp_path)
    feeds = {"x": np.full((1, 4), 0.05, np.float32)}
    assert np.isinf(run_reference(typed, feeds)[0]).all()
    assert np.isfinite(run_ort(source, feeds)[0]).all()


def test_an_old_opset_is_raised_first(tmp_path: Path) -> None:
    source = model(
        [
            op("Unsqueeze", "x", "x4", axes=[1]),
            op("Conv", "x4 w", "c", pads=[1, 1, 1, 1]),
            op("Clip", "c low high", "cl"),
            op("ReduceSum", "cl", "rs", axes=[2, 3], keepdims=1),
            op("Squeeze", "rs", "sq", axes=[2, 3]),
            op("Softmax", "sq", "sm", axis=1),
            op("Dropout", "sm", "dr", ratio=0.5),
            op("Gemm", "dr wf bf", "y", transB=1),
        ],
        [value("x", ("N", 12, 12))],
        [value("y", ("N", 5))],
        [
            constant("w", random_array(8, 1, 3, 3)),
            constant("low", -1.0),
            constant("high", 1.0),
            constant("wf", random_array(5, 8, seed=1)),
            constant("bf", random_array(5, seed=2)),
        ],
        opset=11,
    )
    feeds = {"x": random_array(16, 12, 12, seed=3)}
    for recipe, opset, ir in (("fp32", 13, 7), ("fp16", 13, 7), ("bf16", 22, 10)):
        result, typed = type_model(source, tmp_path, recipe)
        assert (typed.opset_import[0].version, typed.ir_version) == (opset, ir)
        assert f"opset raised from 11 to {opset}" in result.model.changes
        assert f"IR version raised from 6 to {ir}" in result.model.changes
        if recipe == "fp32":
            assert np.array_equal(run_ort(typed, feeds)[0], run_ort(source, feeds)[0])
        if recipe == "fp16":
            assert relative_error(run_ort(typed, feeds)[0], run_ort(source, feeds)[0]) < 5e-3


FIRST, SECOND = "serving_default_画像:0", "onnx::Mul_1"
HEAD, TOP = '/head/out put "q"', "../y/Résultat:0"


def awkwardly_named(node_name: str = "") -> ModelProto:
    """Names with spaces, quotes, colons and other scripts, and names that a tool would invent."""
    spaced = model(
        [
            op("Conv", "IN1 w", "IN1_fp16", node_name, pads=[1, 1, 1, 1]),
            op("Relu", "IN1_fp16", "a", node_name),
            op("Mul", "a IN2", "a_fp16", ""),
            op("Resize", "a_fp16 - w_fp16", "IN1_fp16_cast", "", **NEAREST),
            op("Conv", "IN1_fp16_cast w_fp16_2", "h", "IN2_fp16_cast"),
            op("GlobalAveragePool", "h", "OUT1", "OUT1_cast"),
            op("ReduceMax", "h", "OUT2", "OUT2_fp16", axes=[2, 3]),
        ],
        [value("IN1", ("N", 3, 8, 8)), value("IN2", (1,))],
        [value("OUT1", ("N", 4, 1, 1)), value("OUT2", ("N", 4, 1, 1))],
        [
            constant("w", random_array(4, 3, 3, 3)),
            constant("w_fp16", [1, 1, 2, 2]),
            constant("w_fp16_2", random_array(4, 4, 1, 1)),
        ],
    )
    data = spaced.SerializeToString()
    proto = ModelProto.FromString(data)
    renamed = {"IN1": FIRST, "IN2": SECOND, "OUT1": HEAD, "OUT2": TOP}
    for node in proto.graph.node:
        node.input[:] = [rename(name, renamed) for name in node.input]
        node.output[:] = [rename(name, renamed) for name in node.output]
        node.name = rename(node.name, renamed)
    for described in (*proto.graph.input, *proto.graph.output):
        described.name = renamed[described.name]
    return proto


def rename(name: str, renamed: dict[str, str]) -> str:
    for old, new in renamed.items():
        if name == old or name.startswith(f"{old}_"):
            return new + name[len(old) :]
    return name


@pytest.mark.parametrize("recipe", ["fp16", "bf16"])
@pytest.mark.parametrize("keep_io", [True, False])
def test_awkward_names_survive_and_new_ones_are_unique(
    recipe: str, keep_io: bool, tmp_path: Path
) -> None:
    source = awkwardly_named()
    _, typed = type_model(source, tmp_path, recipe, keep_io=keep_io)
    assert [v.name for v in typed.graph.input] == [FIRST, SECOND]
    assert [v.name for v in typed.graph.output] == [HEAD, TOP]
    if recipe == "fp16" and keep_io:
        feeds = {FIRST: random_array(2, 3, 8, 8), SECOND: np.array([0.5], np.float32)}
        for found, right in zip(run_ort(typed, feeds), run_ort(source, feeds), strict=True):
            assert relative_error(found, right) < 5e-3


def test_doubled_node_names_are_repaired_and_told(tmp_path: Path) -> None:
    result, _ = type_model(awkwardly_named("same"), tmp_path)
    assert "several nodes were named 'same'; all but one were renamed" in result.model.changes


def camera_model() -> ModelProto:
    return model(
        [
            op("Cast", "image", "pixels", to=FLOAT),
            op("Mul", "pixels inverse", "scaled"),
            op("Transpose", "scaled", "planes", perm=[0, 3, 1, 2]),
            op("Conv", "planes w", "c"),
            op("Gather", "table ids", "row"),
            op("Where", "use row zero", "bias"),
            op("Add", "c bias", "a"),
            op("Greater", "a zero", "positive"),
            op("Cast", "positive", "bytes", to=UINT8),
            op("Cast", "bytes", "gate", to=FLOAT),
            op("Mul", "a gate", "y"),
        ],
        [
            value("image", ("N", 16, 16, 3), UINT8),
            value("ids", (1,), INT64),
            value("use", (1,), BOOL),
        ],
        [value("y", ("N", 4, 14, 14))],
        [
            constant("inverse", 1 / 255),
            constant("w", random_array(4, 3, 3, 3)),
            constant("table", random_array(10, 4, 1, 1)),
            constant("zero", 0.0),
        ],
    )


@pytest.mark.parametrize("recipe", ["fp32", "tf32", "fp16", "bf16"])
@pytest.mark.parametrize("keep_io", [True, False])
def test_integer_inputs_keep_their_types(recipe: str, keep_io: bool, tmp_path: Path) -> None:
    source = camera_model()
    _, typed = type_model(source, tmp_path, recipe, keep_io=keep_io)
    types = types_of(typed)
    assert types["image"] is types["bytes"] is DType.UINT8
    assert (types["ids"], types["use"]) == (DType.INT64, DType.BOOL)
    if recipe == "fp16" and keep_io:
        feeds = {
            "image": np.random.default_rng(0).integers(0, 256, (2, 16, 16, 3)).astype(np.uint8),
            "ids": np.array([9]),
            "use": np.array([True]),
        }
        assert relative_error(run_ort(typed, feeds)[0], run_ort(source, feeds)[0]) < 5e-3


def test_a_zero_vector_divided_by_its_clamped_norm_stays_zero(tmp_path: Path) -> None:
    source = model(
        [
            op("ReduceL2", "x", "norm", axes=[-1], keepdims=1),
            op("Clip", "norm tiny", "safe"),
            op("Expand", "safe shape", "wide"),
            op("Div", "x wide", "n"),
            op("MatMul", "n w", "y"),
        ],
        [value("x", (2, 4))],
        [value("y", (2, 4))],
        [
            constant("tiny", 1e-12),
            constant("shape", [2, 4], np.int64),
            constant("w", random_array(4, 4)),
        ],
    )
    _, typed = type_model(source, tmp_path)
    feeds = {"x": np.array([[0, 0, 0, 0], [1, 2, 3, 4]], np.float32)}
    found = run_reference(typed, feeds)[0]
    assert np.array_equal(found[0], np.zeros(4))
    assert relative_error(found, run_ort(source, feeds)[0]) < 2e-3


def test_a_model_that_is_half_fp16_already_is_completed(tmp_path: Path) -> None:
    """As torch.autocast exports it: FP16 products, Casts around a softmax kept in FP32."""
    source = model(
        [
            op("Cast", "x", "x16", to=FLOAT16),
            op("MatMul", "x16 w16", "s16"),
            op("Cast", "s16", "s32", to=FLOAT),
            op("Softmax", "s32", "p32", axis=-1),
            op("Cast", "p32", "p16", to=FLOAT16),
            op("MatMul", "p16 w16", "h16"),
            op("Cast", "h16", "h32", to=FLOAT),
            op("Add", "h32 b", "y"),
        ],
        [value("x")],
        [value("y")],
        [constant("w16", random_array(4, 4), np.float16), constant("b", random_array(4))],
    )
    _, typed = type_model(source, tmp_path)
    assert [node.op_type for node in typed.graph.node] == [
        "Cast", "MatMul", "Softmax", "MatMul", "Add", "Cast",
    ]  # fmt: skip
    feeds = {"x": random_array(2, 4)}
    assert relative_error(run_ort(typed, feeds)[0], run_ort(source, feeds)[0]) < 2e-3


@pytest.mark.parametrize("recipe", ["fp16", "bf16"])
@pytest.mark.parametrize(
    "build",
    [
        conditional_detector,
        shared_constants,
        typed_by_attribute,
        masked_attention,
        written_out_norms,
        awkwardly_named,
    ],
)
def test_typed_models_parse_as_strongly_typed_networks(
    build: Callable[[], ModelProto], recipe: str, tmp_path: Path
) -> None:
    trt = pytest.importorskip("tensorrt_rtx")
    _, typed = type_model(build(), tmp_path, recipe)
    builder = trt.Builder(trt.Logger(trt.Logger.ERROR))
    strongly_typed = 1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED)
    network = builder.create_network(strongly_typed)
    parser = trt.OnnxParser(network, trt.Logger(trt.Logger.ERROR))
    parsed = parser.parse(typed.SerializeToString())
    assert parsed, [parser.get_error(i).desc() for i in range(parser.num_errors)]
    assert network.num_outputs == len(typed.graph.output)
    for position, described in enumerate(typed.graph.output):
        assert network.get_output(position).name == described.name
        assert network.get_output(position).dtype == trt.float32
