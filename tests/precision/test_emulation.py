"""What an emulated model looks like, and what it stores."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from tests.builders import (
    BFLOAT16,
    FLOAT,
    FLOAT16,
    branch_model,
    chain,
    constant,
    count_ops,
    find_node,
    graph,
    in_memory,
    loaded,
    loop_model,
    model,
    op,
    random_array,
    value,
)
from tests.precision.emulated_runs import (
    NUMPY,
    between_casts,
    emulate,
    emulate_and_run,
    narrow_model,
    run_emulated,
)
from tests.precision.typed_models import run_reference
from trtdeploy.backends.onnxruntime.model import open_session
from trtdeploy.config.recipe import RECIPES
from trtdeploy.core.dtypes import DType
from trtdeploy.core.errors import CompileError
from trtdeploy.graph.loading import load_model
from trtdeploy.graph.saving import save_model
from trtdeploy.graph.weights import Span, StoredWeight
from trtdeploy.precision.emulation import emulate_model
from trtdeploy.precision.typed_model import apply_recipe
from trtdeploy.precision.typing_options import TypingOptions

FP16 = pytest.param(FLOAT16, id="float16")
BF16 = pytest.param(BFLOAT16, id="bfloat16")


def test_results_are_rounded_where_they_are_stored_and_copies_are_not(tmp_path: Path) -> None:
    nodes = [
        op("Mul", "x x", "m"),
        op("Relu", "m", "r"),
        op("Concat", "r x", "c", axis=1),
        op("Sigmoid", "c", "y"),
    ]
    emulated = onnx.load(emulate(narrow_model(nodes), tmp_path))
    assert [node.op_type for node in emulated.graph.node] == [
        "Cast", "Mul", "Cast", "Cast", "Relu", "Concat", "Sigmoid", "Cast",
    ]  # fmt: skip
    assert list(find_node(emulated, "r").input) == ["m"]


def test_a_widening_cast_of_the_typed_model_disappears(tmp_path: Path) -> None:
    proto = between_casts([op("Neg", "a", "b"), op("Cast", "b", "wide", to=FLOAT)], FLOAT16)
    proto.graph.node.append(op("Add", "wide wide", "z"))
    proto.graph.output.append(value("z", (4, 4)))
    emulated = onnx.load(emulate(proto, tmp_path))
    assert list(find_node(emulated, "z").input) == ["b", "b"]


def test_inputs_and_outputs_stay_as_they_are(tmp_path: Path) -> None:
    proto = model(
        [op("Add", "x k", "s"), op("Mul", "s w", "y"), op("Neg", "s", "n")],
        [value("unused", ("B",)), value("x", dtype=FLOAT16), value("w", dtype=FLOAT16)],
        [
            value("n", dtype=FLOAT16),  # exact
            value("y", dtype=FLOAT16),
            value("s", dtype=FLOAT16),  # also read
            value("w", dtype=FLOAT16),  # an input
            value("k", (4,), dtype=FLOAT16),  # a constant, also read
        ],
        [constant("k", [0.1, 0.2, 70.3, 1e4], np.float16)],
    )
    x = random_array(2, 4, scale=3e4).astype(np.float16)
    feeds = {"unused": np.ones(1, np.float32), "x": x, "w": x[::-1]}
    found = emulate_and_run(proto, feeds, tmp_path)
    assert [result.dtype for result in found] == [np.float16] * 5
    for result, expected in zip(found, run_reference(proto, feeds), strict=True):
        np.testing.assert_array_equal(result, expected)


def test_bfloat16_inputs_and_outputs_stay_too(tmp_path: Path) -> None:
    """ONNX Runtime's Python knows no bfloat16 arrays: the bits go in and out through buffers."""
    session = open_session(
        emulate(narrow_model([op("Mul", "x x", "y")], BFLOAT16), tmp_path), optimize=False
    )
    x = random_array(2, 4).astype(NUMPY[BFLOAT16])
    y = np.zeros_like(x)
    binding = session.io_binding()
    binding.bind_input("x", "cpu", 0, BFLOAT16, x.shape, x.ctypes.data)
    binding.bind_output("y", "cpu", 0, BFLOAT16, y.shape, y.ctypes.data)
    session.run_with_iobinding(binding)
    assert y.tobytes() == (x * x).tobytes()


@pytest.mark.parametrize("recipe", ["fp16", "bf16"])
@pytest.mark.parametrize("flag", [True, False])
def test_branches_are_rounded_too(recipe: str, flag: bool, tmp_path: Path) -> None:
    source = branch_model(
        [op("MatMul", "x w", "m"), op("Mul", "m k", "t")],
        [op("Mul", "before k2", "e")],
        before=[op("Mul", "x x", "before")],
        after=[op("Mul", "p p", "y")],
        constants=[constant("w", random_array(4, 4)), constant("k", 0.3)],
        inner_constants=((), [constant("k2", 0.7)]),
    )
    typed = apply_recipe(in_memory(source), TypingOptions(RECIPES[recipe])).model
    assert count_ops(typed.proto, "Cast") >= 2
    feeds = {"x": random_array(2, 4, seed=1), "flag": np.array(flag)}
    found = emulate_and_run(typed, feeds, tmp_path)[0]
    np.testing.assert_array_equal(found, run_reference(typed.proto, feeds)[0])


def test_a_narrow_state_is_rounded_in_every_iteration(tmp_path: Path) -> None:
    proto = loop_model([op("Mul", "s k", "s_next")], [constant("k", 11, np.float16)])
    for values in (proto.graph.input, proto.graph.output):
        values[0].type.tensor_type.elem_type = FLOAT16
    body = find_node(proto, "repeat").attribute[0].g
    body.input[2].type.tensor_type.elem_type = FLOAT16
    body.output[1].type.tensor_type.elem_type = FLOAT16
    x = np.array([[1.001, 49.2, 50, -60]], np.float16)  # times 1331: 66550 is infinity
    found = emulate_and_run(proto, {"x": x}, tmp_path)[0]
    k = np.float16(11)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(found, x * k * k * k)
    assert np.isinf(found[0, 2:]).all()


def test_a_scan_keeps_its_types(tmp_path: Path) -> None:
    body = graph(
        [op("Add", "s e", "s_next"), op("Mul", "s_next e", "o")],
        [value("s", (4,), BFLOAT16), value("e", (4,), BFLOAT16)],
        [value("s_next", (4,), BFLOAT16), value("o", (4,), BFLOAT16)],
    )
    nodes = [
        op("Slice", "a nought one", "row"),
        op("Squeeze", "row nought", "start"),
        op("Scan", "start a", "end b", body=body, num_scan_inputs=1),
    ]
    constants = [constant("nought", [0], np.int64), constant("one", [1], np.int64)]
    proto = between_casts(nodes, BFLOAT16, constants=constants)
    feeds = {"x": random_array(4, 4)}
    found = emulate_and_run(proto, feeds, tmp_path)[0]
    np.testing.assert_array_equal(found, run_reference(proto, feeds)[0])


def test_types_in_attributes_follow(tmp_path: Path) -> None:
    tenth = numpy_helper.from_array(np.array([0.1], np.float16))
    nodes = [
        op("Shape", "a", "shape"),
        op("ConstantOfShape", "shape", "filled", value=tenth),
        op("EyeLike", "a", "eye", dtype=FLOAT16),
        op("CastLike", "third a", "third_low"),
        op("CastLike", "third_low x", "third_again"),
        op("RandomNormalLike", "a", "noise", dtype=FLOAT16, seed=1.0),
        op("Mul", "noise zero", "silence"),
        op("Add", "filled eye", "b1"),
        op("Add", "b1 silence", "b2"),
        op("CastLike", "third_again a", "third_low_again"),
        op("Add", "b2 third_low_again", "b3"),
        op("Add", "b3 a", "b"),
    ]
    constants = [constant("third", 1 / 3), constant("zero", 0, np.float16)]
    proto = between_casts(nodes, FLOAT16, constants=constants)
    found = emulate_and_run(proto, {"x": random_array(4, 4)}, tmp_path)[0]
    expected = run_reference(proto, {"x": random_array(4, 4)})[0]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("code", [FP16, BF16])
def test_a_constant_node_that_is_a_result_stays_narrow(code: int, tmp_path: Path) -> None:
    tenths = numpy_helper.from_array(np.array([0.1, 0.2, 0.3, 0.4], NUMPY[code]))
    proto = between_casts([op("Constant", "", "k", value=tenths), op("Mul", "a k", "b")], code)
    proto.graph.output.append(value("k", (4,), code))
    path = emulate(proto, tmp_path)
    found = open_session(path, optimize=False).run(["y"], {"x": random_array(4, 4)})[0]
    expected = run_reference(proto, {"x": random_array(4, 4)})[0]
    np.testing.assert_array_equal(found, expected)


def test_the_statistics_of_a_layer_norm_are_rounded(tmp_path: Path) -> None:
    proto = model(
        [
            op("Cast", "x", "a", to=BFLOAT16),
            op("LayerNormalization", "a k", "b mean", stash_type=BFLOAT16),
            op("Cast", "mean", "y", to=FLOAT),
            op("Cast", "b", "z", to=FLOAT),
        ],
        [value("x")],
        [value("y", ("N", 1)), value("z")],
        [constant("k", np.ones(4), NUMPY[BFLOAT16])],
    )
    for result in emulate_and_run(proto, {"x": random_array(4, 4)}, tmp_path):
        np.testing.assert_array_equal(result, result.astype(NUMPY[BFLOAT16]).astype(np.float32))


@pytest.mark.parametrize(
    ("quantized", "opset"), [(TensorProto.INT8, 19), (TensorProto.FLOAT8E4M3FN, 19)]
)
def test_quantization_stays_and_its_narrow_ends_are_rounded(
    quantized: int, opset: int, tmp_path: Path
) -> None:
    zero = helper.make_tensor("zero", quantized, [], [0])
    nodes = [
        op("QuantizeLinear", "a scale zero", "q"),
        op("DequantizeLinear", "q scale zero", "d"),
        op("Add", "d d", "b"),
    ]
    constants = [constant("scale", 0.0271, np.float16), zero]
    proto = between_casts(nodes, FLOAT16, constants=constants, opset=opset)
    path = emulate(proto, tmp_path)
    emulated = onnx.load(path)
    assert count_ops(emulated, "QuantizeLinear") == count_ops(emulated, "DequantizeLinear") == 1
    found = run_emulated(path, {"x": random_array(4, 4)})[0]
    np.testing.assert_array_equal(found, found.astype(np.float16).astype(np.float32))
    np.testing.assert_array_equal(found, run_reference(proto, {"x": random_array(4, 4)})[0])


def wide_layer(width: int = 48) -> ModelProto:
    return model(
        [op("MatMul", "x w", "h"), op("Relu", "h", "r"), op("MatMul", "r w", "y")],
        [value("x", ("N", width))],
        [value("y", ("N", width))],
        [constant("w", random_array(width, width, seed=1, scale=0.2))],
    )


@pytest.mark.parametrize("recipe", ["fp16", "bf16"])
@pytest.mark.parametrize("single_file_bytes", [0, 1 << 30], ids=["data_file", "one_file"])
def test_large_weights_stay_on_the_disk(
    recipe: str, single_file_bytes: int, tmp_path: Path
) -> None:
    typed = apply_recipe(loaded(wide_layer(), tmp_path), TypingOptions(RECIPES[recipe])).model
    saved = tmp_path / "typed.onnx"
    save_model(typed, saved, single_file_bytes=single_file_bytes)
    low = typed.weights["w_fp16" if recipe == "fp16" else "w_bf16"].stored_as
    assert low in (DType.FLOAT16, DType.BFLOAT16)
    emulated = emulate_model(typed)
    weight = next(iter(emulated.weights.values()))
    assert (weight.stored_as, weight.rounded_to) == (DType.FLOAT32, low)
    assert emulated.proto.ByteSize() < 4096
    feeds = {"x": random_array(3, 48, seed=2)}
    direct = emulate_and_run(typed, feeds, tmp_path)
    from_file = emulate_and_run(load_model(saved), feeds, tmp_path)
    np.testing.assert_array_equal(direct[0], from_file[0])


@pytest.mark.parametrize("source", [DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16])
@pytest.mark.parametrize("stored_as", [DType.FLOAT16, DType.BFLOAT16])
def test_a_widened_weight_holds_what_was_stored(
    source: DType, stored_as: DType, tmp_path: Path
) -> None:
    values = random_array(99, scale=1e4).astype({**NUMPY, FLOAT: np.dtype(np.float32)}[source.code])
    (tmp_path / "w").write_bytes(values.tobytes())
    weight = StoredWeight(Span(tmp_path / "w", 0, values.nbytes), source, stored_as)
    for widened in (weight.widen(), weight.widen().widen()):
        expected = values.astype(NUMPY[stored_as.code]).astype(np.float32)
        assert b"".join(map(bytes, widened.iterate_bytes())) == expected.tobytes()
        assert widened.stored_bytes == expected.nbytes


def test_small_constants_are_read_from_either_field(tmp_path: Path) -> None:
    k = helper.make_tensor("k", FLOAT16, [4], [0.1, 0.2, 0.3, 0.4])
    assert k.int32_data
    proto = between_casts([op("Mul", "a k", "b")], FLOAT16, [k])
    feeds = {"x": random_array(4, 4)}
    found = emulate_and_run(proto, feeds, tmp_path)[0]
    np.testing.assert_array_equal(found, run_reference(proto, feeds)[0])


def test_functions_of_the_model_are_rounded_inside(tmp_path: Path) -> None:
    proto = between_casts([op("Square", "a", "b", domain="com.acme")], FLOAT16)
    nodes = [op("Mul", "u u", "v"), op("Sqrt", "v", "w")]
    opsets = [helper.make_opsetid("", 17)]
    proto.functions.append(helper.make_function("com.acme", "Square", ["u"], ["w"], nodes, opsets))
    found = emulate_and_run(proto, {"x": np.full((4, 4), 300, np.float32)}, tmp_path)[0]
    assert np.isinf(found).all()


def test_a_model_without_narrow_values_is_left_alone(tmp_path: Path) -> None:
    source = chain(["Relu", "Sigmoid"])
    emulated = onnx.load(emulate(source, tmp_path))
    assert [node.op_type for node in emulated.graph.node] == ["Relu", "Sigmoid"]


def test_emulating_twice_changes_no_number(tmp_path: Path) -> None:
    nodes = [op("Mul", "a a", "m"), op("Sigmoid", "m", "b")]
    once = loaded(between_casts(nodes, FLOAT16), tmp_path)
    twice = emulate_model(once)
    feeds = {"x": random_array(4, 4, scale=100)}
    np.testing.assert_array_equal(
        emulate_and_run(once, feeds, tmp_path)[0], emulate_and_run(twice, feeds, tmp_path)[0]
    )


def test_bfloat16_runs_only_through_emulation(tmp_path: Path) -> None:
    typed = apply_recipe(loaded(wide_layer(), tmp_path), TypingOptions(RECIPES["bf16"])).model
    save_model(typed, tmp_path / "typed.onnx")
    with pytest.raises(CompileError, match="refuses"):
        open_session(tmp_path / "typed.onnx", optimize=False)
    feeds = {"x": random_array(3, 48)}
    found = emulate_and_run(typed, feeds, tmp_path)[0]
    expected = open_session(tmp_path / "model.onnx", optimize=False).run(None, feeds)[0]
    np.testing.assert_allclose(found, expected, atol=0.02 * np.abs(expected).max())
