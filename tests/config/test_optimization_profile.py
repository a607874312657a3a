"""Requested shapes against a model: every mistake is named, everything assumed is noted."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtdeploy.config.loading import load_deploy_profile
from trtdeploy.config.optimization_profile import resolve_optimization_profiles, resolve_shapes
from trtdeploy.config.shape_request import ShapeRequest, build_shape_requests
from trtdeploy.config.shape_table import AxisDefaults, ShapeTable
from trtdeploy.core.dtypes import DType
from trtdeploy.core.errors import OptimizationProfileError
from trtdeploy.core.ranges import ShapeRange, ValueRange
from trtdeploy.core.tensors import TensorSpec

F32 = DType.FLOAT32
DETECTOR = [
    TensorSpec("images", F32, ("N", 3, "H", "W")),
    TensorSpec("unused_meta", F32, ("N", 4)),
]
ENCODER = [
    TensorSpec("tokens", F32, ("B", "S", 16)),
    TensorSpec("pos", F32, ("S", 16)),
    TensorSpec("mask", DType.INT32, ("B", "S")),
]
RESIZER = [
    TensorSpec("x", F32, (1, 3, "H", "W")),
    TensorSpec("out_size", DType.INT64, (2,), is_shape_tensor=True),
    TensorSpec("n_pos", DType.INT64, (), is_shape_tensor=True),
]
IMAGES = {"min": [1, 3, 32, 32], "opt": [4, 3, 64, 64], "max": [8, 3, 128, 128]}
META = {"min": [1, 4], "opt": [4, 4], "max": [8, 4]}


def request(**table: Any) -> ShapeRequest:
    return ShapeRequest(tables=(ShapeTable.model_validate(table),))


def problems(inputs: list[TensorSpec], *requests: ShapeRequest) -> list[str]:
    return [str(problem) for problem in resolve_shapes(inputs, requests).problems]


def test_good_shapes_pass() -> None:
    (result,) = resolve_optimization_profiles(
        DETECTOR, [request(inputs={"images": IMAGES, "unused_meta": META})]
    )
    assert result.shapes["images"] == ShapeRange((1, 3, 32, 32), (4, 3, 64, 64), (8, 3, 128, 128))
    assert result.shapes["unused_meta"].max == (8, 4)


@pytest.mark.parametrize(
    ("images", "expected"),
    [
        (
            {point: shape[1:] for point, shape in IMAGES.items()},
            "input 'images': given 3 sizes [3, 32, 32] at min, opt, max; "
            "expected 4 sizes (Nx3xHxW)",
        ),
        (
            {point: [shape[0], 1, *shape[2:]] for point, shape in IMAGES.items()},
            "input 'images', axis 1: given min 1, opt 1, max 1; "
            "expected 3, which is fixed in the model",
        ),
        (
            {**IMAGES, "min": [5, 3, 32, 32]},
            "input 'images', axis 0 ('N'): given min 5, opt 4, max 8; expected min <= opt <= max",
        ),
        (
            {**IMAGES, "opt": [4, 3, 256, 64]},
            "input 'images', axis 2 ('H'): given min 32, opt 256, max 128; "
            "expected min <= opt <= max",
        ),
        (
            {**IMAGES, "min": [0, 3, 32, 32]},
            "input 'images', axis 0 ('N'): given min 0; "
            "expected at least 1 (shapes.allow_zero permits empty tensors)",
        ),
        (
            {**IMAGES, "max": [-1, 3, 128, 128]},
            "input 'images', axis 0 ('N'): given max -1; "
            "expected a real size: an optimization profile has no -1",
        ),
        (
            {point: shape for point, shape in IMAGES.items() if point != "opt"},
            "input 'images': given no opt; expected min, opt and max",
        ),
        (
            {**IMAGES, "max": [8, 3, 128, 2**31]},
            f"input 'images', axis 3 ('W'): given max {2**31}; expected at most {2**31 - 1}",
        ),
    ],
    ids=["rank", "static", "min>opt", "opt>max", "zero", "minus_one", "missing_opt", "large"],
)
def test_each_mistake_is_its_own_error(images: dict[str, list[int]], expected: str) -> None:
    found = problems(DETECTOR, request(inputs={"images": images, "unused_meta": META}))
    assert found == [expected]


def test_missing_input_is_named() -> None:
    (problem,) = problems(DETECTOR, request(inputs={"unused_meta": META}))
    assert problem.startswith("input 'images': given no shape")
    assert "axis 2 ('H'), axis 3 ('W')" in problem


def test_wrong_name_lists_the_real_ones() -> None:
    found = problems(DETECTOR, request(inputs={"imags": IMAGES, "unused_meta": META}))
    assert "'images' (Nx3xHxW), 'unused_meta' (Nx4). Did you mean 'images'?" in found[0]
    assert found[1].startswith("input 'images': given no shape")


def test_all_problems_come_in_one_error() -> None:
    bad = {"min": [5, 1, 0, 32], "opt": [4, 1, 64, 64], "max": [8, 1, 128, 32]}
    with pytest.raises(OptimizationProfileError) as caught:
        resolve_optimization_profiles(DETECTOR, [request(inputs={"images": bad, "x": META})])
    text = caught.value.message
    assert "5 problems:" in text
    for fragment in ("input 'x'", "axis 0", "axis 1", "axis 2", "axis 3"):
        assert fragment in text


def test_zero_is_accepted_on_purpose() -> None:
    table = ShapeTable.model_validate({"symbols": {"N": {"min": 0, "opt": 4, "max": 8}}})
    asked = ShapeRequest(tables=(table,), allow_zero=True)
    (result,) = resolve_optimization_profiles(DETECTOR, [asked])
    assert result.shapes["images"].min[0] == result.shapes["unused_meta"].min[0] == 0


def test_input_that_shares_all_symbols_follows() -> None:
    (result,) = resolve_optimization_profiles(DETECTOR, [request(inputs={"images": IMAGES})])
    assert result.shapes["unused_meta"] == ShapeRange((1, 4), (4, 4), (8, 4))


@pytest.mark.parametrize(
    ("name", "shape", "symbol"),
    [
        ("pos", {"min": [8, 16], "opt": [48, 16], "max": [64, 16]}, "S"),
        ("mask", {"min": [1, 8], "opt": [2, 48], "max": [4, 64]}, "S"),
        ("mask", {"min": [1, 8], "opt": [1, 32], "max": [1, 64]}, "B"),
    ],
)
def test_symbol_must_agree_between_inputs(name: str, shape: Any, symbol: str) -> None:
    inputs = {
        "tokens": {"min": [1, 8, 16], "opt": [2, 32, 16], "max": [4, 64, 16]},
        "pos": {"min": [8, 16], "opt": [32, 16], "max": [64, 16]},
        "mask": {"min": [1, 8], "opt": [2, 32], "max": [4, 64]},
    }
    assert problems(ENCODER, request(inputs=inputs)) == []
    (problem,) = problems(ENCODER, request(inputs={**inputs, name: shape}))
    assert problem.startswith(f"symbol '{symbol}': given ")
    assert name in problem


def test_symbol_table_reaches_every_input() -> None:
    symbols = {"S": {"min": 8, "opt": 32, "max": 64}, "B": 2}
    (result,) = resolve_optimization_profiles(ENCODER, [request(symbols=symbols)])
    assert result.shapes["tokens"] == ShapeRange((2, 8, 16), (2, 32, 16), (2, 64, 16))
    assert result.shapes["pos"] == ShapeRange((8, 16), (32, 16), (64, 16))
    assert result.shapes["mask"] == ShapeRange((2, 8), (2, 32), (2, 64))


def test_symbol_table_against_explicit_shape_is_an_error() -> None:
    asked = request(symbols={"N": 1}, inputs={"images": IMAGES, "unused_meta": META})
    (problem,) = problems(DETECTOR, asked)
    assert "symbol 'N': given symbols.N says 1/1/1, images axis 0 says 1/4/8" in problem


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ({"min": 5, "opt": 4}, "symbol 'N': given min 5, opt 4; expected min <= opt <= max"),
        ({"min": 4, "max": 2}, "symbol 'N': given min 4, max 2; expected min <= opt <= max"),
        ({"max": -1}, "symbol 'N': given max -1; expected a real size"),
        (0, "symbol 'N': given min 0, opt 0, max 0; expected at least 1"),
    ],
)
def test_wrong_symbol_sizes_are_named(sizes: Any, expected: str) -> None:
    (problem,) = problems(DETECTOR, request(symbols={"N": sizes}))
    assert problem.startswith(expected)


def test_unknown_symbol_lists_the_real_ones() -> None:
    (problem,) = problems(DETECTOR, request(symbols={"heigth": 4}))
    assert "'N' (images axis 0, unused_meta axis 0), 'H' (images axis 2)" in problem
    assert "Did you mean 'height'?" in problem
    (problem,) = problems([TensorSpec("x", F32, (1, 4))], request(symbols={"batch": 4}))
    assert "every size in the model is fixed" in problem


def test_role_stands_for_a_symbol_of_another_name() -> None:
    result = resolve_shapes(DETECTOR, [request(symbols={"batch": 2, "height": 96})])
    assert result.require()[0].shapes["images"].opt == (2, 3, 96, 640)
    assert "batch sizes 2/2/2 applied to 'N' (images axis 0, unused_meta axis 0)" in result.notes


def test_defaults_are_noted() -> None:
    result = resolve_shapes(DETECTOR, [])
    assert result.require()[0].shapes["images"] == ShapeRange(
        (1, 3, 320, 320), (4, 3, 640, 640), (8, 3, 1280, 1280)
    )
    assert result.notes == (
        "'N' (images axis 0, unused_meta axis 0), taken as batch, not given: 1/4/8 assumed",
        "'H' (images axis 2), taken as height, not given: 320/640/1280 assumed",
        "'W' (images axis 3), taken as width, not given: 320/640/1280 assumed",
    )


def test_partial_symbol_is_completed_and_noted() -> None:
    result = resolve_shapes(DETECTOR, [request(symbols={"H": {"opt": 224}})])
    assert result.require()[0].shapes["images"].min[2] == 96
    assert any("'H'" in note and "96/224/448 assumed" in note for note in result.notes)


def test_static_model_needs_no_table() -> None:
    result = resolve_shapes([TensorSpec("x", F32, (1, 3, 8, 8)), TensorSpec("s", F32, ())], [])
    shapes = result.require()[0].shapes
    assert shapes == {
        "x": ShapeRange((1, 3, 8, 8), (1, 3, 8, 8), (1, 3, 8, 8)),
        "s": ShapeRange((), (), ()),
    }
    assert result.notes == ()


def test_unknown_rank_needs_a_shape() -> None:
    spec = TensorSpec("x", F32, None)
    (problem,) = problems([spec])
    assert "--shape 'x:MIN:OPT:MAX'" in problem
    row = {"min": [1, 2], "opt": [1, 4], "max": [2, 8]}
    (result,) = resolve_optimization_profiles([spec], [request(inputs={"x": row})])
    assert result.shapes["x"] == ShapeRange((1, 2), (1, 4), (2, 8))
    (problem,) = problems([spec], request(inputs={"x": {**row, "max": [2]}}))
    assert "given 1 sizes [2] at max; expected 2 sizes" in problem


def test_unnamed_axes_take_shapes_of_their_own() -> None:
    spec = TensorSpec("x", F32, ("?", 3, "?", "?"))
    (result,) = resolve_optimization_profiles([spec], [request(inputs={"x": IMAGES})])
    assert result.shapes["x"].max == (8, 3, 128, 128)


def test_shape_tensor_needs_values_not_dims() -> None:
    size, count = problems(RESIZER)
    assert "its contents, not its dimensions, decide shapes" in size
    assert "--value 'out_size:1,1:8,8:64,64'" in size
    assert "values: {out_size: {min: [1,1], opt: [8,8], max: [64,64]}}" in size
    assert "--value 'n_pos:1:8:64'" in count


VALUES = {
    "out_size": {"min": [8, 8], "opt": [20, 33], "max": [64, 64]},
    "n_pos": {"min": 1, "opt": 7, "max": 64},
}


def test_values_are_kept_and_scalar_has_empty_shape() -> None:
    (result,) = resolve_optimization_profiles(RESIZER, [request(values=VALUES)])
    assert result.values == {
        "out_size": ValueRange((8, 8), (20, 33), (64, 64)),
        "n_pos": ValueRange((1,), (7,), (64,)),
    }
    assert result.shapes["n_pos"] == ShapeRange((), (), ())
    assert result.shapes["out_size"] == ShapeRange((2,), (2,), (2,))


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("out_size", {"min": [8, 8], "opt": [64, 64], "max": [20, 33]}, "element 0: given min 8"),
        (
            "out_size",
            {"min": [8], "opt": [20], "max": [64]},
            "given 1 values [8] at min; expected 2",
        ),
        (
            "n_pos",
            {"min": [1, 2], "opt": [1, 2], "max": [1, 2]},
            "expected 1 (its shape is scalar)",
        ),
        ("n_pos", {"min": 1, "max": 2}, "given no opt; expected min, opt and max"),
        ("n_pos", {"min": 1, "opt": 2, "max": 2**63}, "expected 64-bit integers"),
        ("x", {"min": 1, "opt": 1, "max": 1}, "given values for a float32 tensor"),
        ("npos", {"min": 1, "opt": 1, "max": 1}, "Did you mean 'n_pos'?"),
    ],
)
def test_wrong_values_are_named(name: str, values: Any, expected: str) -> None:
    (problem,) = problems(RESIZER, request(values={**VALUES, name: values}))
    assert expected in problem


def test_scalar_input_refuses_sizes() -> None:
    shape = {"min": [1], "opt": [1], "max": [1]}
    (problem,) = problems(RESIZER, request(values=VALUES, inputs={"n_pos": shape}))
    assert "expected []: it is a scalar" in problem


def test_number_of_values_sizes_an_open_shape_tensor() -> None:
    spec = TensorSpec("sizes", DType.INT64, ("?0",), is_shape_tensor=True)
    (result,) = resolve_optimization_profiles(
        [spec], [request(values={"sizes": {"min": [1, 1], "opt": [2, 2], "max": [4, 4]}})]
    )
    assert result.shapes["sizes"] == ShapeRange((2,), (2,), (2,))


def test_values_of_another_integer_input_are_kept_with_a_note() -> None:
    spec = TensorSpec("ids", DType.INT64, (1,))
    result = resolve_shapes([spec], [request(values={"ids": {"min": 0, "opt": 1, "max": 9}})])
    assert result.require()[0].values == {"ids": ValueRange((0,), (1,), (9,))}
    assert result.notes == ("values of 'ids' kept, though no shape seems to depend on it",)


def test_stronger_table_wins_and_weaker_never_conflicts() -> None:
    given_on_command_line = ShapeTable.model_validate({"inputs": {"images": IMAGES}})
    file = ShapeTable.model_validate({"symbols": {"N": 16, "H": {"opt": 256}}})
    asked = ShapeRequest(tables=(given_on_command_line, file))
    result = resolve_shapes(DETECTOR, [asked])
    assert result.require()[0].shapes["unused_meta"].max == (8, 4)
    assert result.notes == ()


def test_override_repairs_a_wrong_weaker_table() -> None:
    weak = ShapeTable.model_validate(
        {"inputs": {"images": {"min": [1], "opt": [1], "max": [1]}}, "symbols": {"N": -1}}
    )
    strong = ShapeTable.model_validate(
        {"inputs": {"images": IMAGES}, "symbols": {"N": {"min": 1, "opt": 4, "max": 8}}}
    )
    assert problems(DETECTOR, ShapeRequest(tables=(strong, weak))) == []
    assert len(problems(DETECTOR, ShapeRequest(tables=(weak,)))) == 2


def test_several_optimization_profiles_from_one_file() -> None:
    entries = "optimization_profiles=[{symbols: {N: 1}}, {name: many, symbols: {N: 8}}]"
    overrides = [entries, "shapes.symbols.H=64", "shapes.symbols.N=3"]
    resolved = load_deploy_profile("rtx4090-fp16", overrides)
    table = ShapeTable.model_validate({"symbols": {"W": 32}})
    one, many = resolve_optimization_profiles(DETECTOR, resolved.build_shape_requests(table))
    assert (one.name, many.name) == ("0", "many")
    assert one.shapes["images"].opt == (1, 3, 64, 32)
    assert many.shapes["images"].opt == (8, 3, 64, 32)


def test_problems_name_their_optimization_profile() -> None:
    resolved = load_deploy_profile(
        "rtx4090-fp16", ["optimization_profiles=[{symbols: {N: 1}}, {symbols: {M: 8}}]"]
    )
    (problem,) = problems(DETECTOR, *build_shape_requests(resolved.profile))
    assert problem.startswith("optimization profile '1': symbol 'M'")


def test_profile_defaults_are_used() -> None:
    requests = load_deploy_profile("orin-fp16").build_shape_requests()
    (result,) = resolve_optimization_profiles(DETECTOR, requests)
    assert result.shapes["images"].max[0] == 4
    assert result.shapes["images"].opt[0] == 1


SYMBOLS = st.sampled_from(["N", "H", "W", "seq", "odd", "?0", "?"])
DIMS = st.lists(st.one_of(st.integers(1, 64), SYMBOLS), max_size=5).map(tuple)
SIZES = st.dictionaries(
    st.sampled_from(["min", "opt", "max"]), st.integers(1, 3000), min_size=1
).filter(lambda sizes: [sizes[p] for p in ("min", "opt", "max") if p in sizes]
         == sorted(sizes.values()))  # fmt: skip


@given(
    shapes=st.lists(DIMS, min_size=1, max_size=4),
    wanted=st.dictionaries(SYMBOLS, SIZES),
    defaults=st.dictionaries(
        st.sampled_from(["batch", "height", "width", "sequence", "other"]), SIZES
    ),
)
def test_derived_shapes_are_in_order_and_tied(
    shapes: list[tuple[int | str, ...]], wanted: dict[str, Any], defaults: dict[str, Any]
) -> None:
    inputs = [TensorSpec(f"in{index}", F32, shape) for index, shape in enumerate(shapes)]
    present = {dim for shape in shapes for dim in shape}
    table = {symbol: sizes for symbol, sizes in wanted.items() if symbol in present}
    asked = ShapeRequest(
        tables=(ShapeTable.model_validate({"symbols": table}),),
        defaults=AxisDefaults.model_validate(defaults),
    )
    (result,) = resolve_optimization_profiles(inputs, [asked])
    tied: dict[str, tuple[int, ...]] = {}
    for spec in inputs:
        chosen = result.shapes[spec.name]
        for dim, *sizes in zip(spec.shape or (), chosen.min, chosen.opt, chosen.max, strict=True):
            assert 1 <= sizes[0] <= sizes[1] <= sizes[2]
            if isinstance(dim, int):
                assert set(sizes) == {dim}
            elif not dim.startswith("?"):
                assert tied.setdefault(dim, tuple(sizes)) == tuple(sizes)
