"""Sizes on the command line, with names that hold anything."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtdeploy.config.shape_syntax import (
    format_shape_argument,
    format_value_argument,
    parse_shape_argument,
    parse_shape_json,
    parse_shape_table,
    parse_symbol_argument,
    parse_value_argument,
)
from trtdeploy.config.shape_table import TensorSizes
from trtdeploy.core.errors import OptimizationProfileError, UsageError
from trtdeploy.core.ranges import ShapeRange, ValueRange

NAMES = st.one_of(
    st.text(min_size=1),
    st.sampled_from(
        [
            "serving_default_画像:0",
            "onnx::Mul_1",
            '/head/out put "q"',
            "a=b",
            "x:1:2:3",
            "../y:0",
            " ",
        ]
    ),
)
ROWS = st.lists(st.integers(0, 10**6), max_size=6).map(tuple)
VALUE_ROWS = st.lists(st.integers(-(10**9), 10**9), min_size=1, max_size=6).map(tuple)


@given(name=NAMES, low=ROWS, usual=ROWS, high=ROWS)
def test_shape_reads_back(
    name: str, low: tuple[int, ...], usual: tuple[int, ...], high: tuple[int, ...]
) -> None:
    text = format_shape_argument(name, ShapeRange(low, usual, high))
    assert parse_shape_argument(text) == (name, TensorSizes(min=low, opt=usual, max=high))


@given(name=NAMES, low=VALUE_ROWS, usual=VALUE_ROWS, high=VALUE_ROWS)
def test_values_read_back(
    name: str, low: tuple[int, ...], usual: tuple[int, ...], high: tuple[int, ...]
) -> None:
    text = format_value_argument(name, ValueRange(low, usual, high))
    assert parse_value_argument(text) == (name, TensorSizes(min=low, opt=usual, max=high))


@pytest.mark.parametrize(
    ("text", "name", "rows"),
    [
        (
            "images:1x3x320x320:4x3x640x640:8x3x1280x1280",
            "images",
            ((1, 3, 320, 320), (4, 3, 640, 640), (8, 3, 1280, 1280)),
        ),
        ("images:1x3x640x640", "images", ((1, 3, 640, 640),) * 3),
        ("images:1X3", "images", ((1, 3),) * 3),
        ("n_pos:scalar", "n_pos", ((), (), ())),
        ("serving_default:0:1x3", "serving_default:0", ((1, 3),) * 3),
        ("onnx::Mul_1:4", "onnx::Mul_1", ((4,),) * 3),
        ("out put:1:2:3", "out put", ((1,), (2,), (3,))),
        ("x:1x3:4x3:-1x3", "x", ((1, 3), (4, 3), (-1, 3))),
    ],
)
def test_shape_forms(text: str, name: str, rows: tuple[tuple[int, ...], ...]) -> None:
    found, sizes = parse_shape_argument(text)
    assert found == name
    assert (sizes.min, sizes.opt, sizes.max) == rows


@pytest.mark.parametrize(
    "text",
    [
        "",
        "images",
        "images:",
        ":1x3",
        "images:1x",
        "images:1,3",
        "images:1x3:4x3",
        "images:axb",
        "images:1x3\n",
        "images:" + "9" * 30,
        "1x3x640x640",
        "images:\N{FULLWIDTH DIGIT ONE}x3",
        ":1:2:3x",
    ],
)
def test_wrong_shape_shows_the_form(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_shape_argument(text)
    assert "expected NAME:MIN:OPT:MAX" in caught.value.message
    assert "--shape 'images:1x3x320x320:" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "symbol", "sizes"),
    [
        ("batch=1:4:8", "batch", (1, 4, 8)),
        ("batch=4", "batch", (4, 4, 4)),
        ("past + 1=2", "past + 1", (2, 2, 2)),
        ("a=b=2", "a=b", (2, 2, 2)),
        ("?0=2", "?0", (2, 2, 2)),
    ],
)
def test_symbol_forms(text: str, symbol: str, sizes: tuple[int, int, int]) -> None:
    found, parsed = parse_symbol_argument(text)
    assert found == symbol
    assert (parsed.min, parsed.opt, parsed.max) == sizes


@pytest.mark.parametrize(
    "text", ["", "batch", "batch=", "=4", "batch=1:4", "batch=a", "batch=1::8"]
)
def test_wrong_symbol_shows_the_form(text: str) -> None:
    with pytest.raises(UsageError, match="expected SYMBOL=MIN:OPT:MAX") as caught:
        parse_symbol_argument(text)
    assert "--symbol batch=1:4:8" in caught.value.hint


def test_value_forms() -> None:
    name, sizes = parse_value_argument("out_size:8,8:20,33:64,64")
    assert (name, sizes.opt) == ("out_size", (20, 33))
    assert parse_value_argument("n_pos:1:7:64")[1].max == (64,)
    assert parse_value_argument("ends:0:-1")[0] == "ends:0"


@pytest.mark.parametrize("text", ["", "n_pos", "n_pos:", "n_pos:1.5", "n:8,8:64,64", "n:1,,2"])
def test_wrong_value_shows_the_form(text: str) -> None:
    with pytest.raises(UsageError, match="expected NAME:MIN:OPT:MAX") as caught:
        parse_value_argument(text)
    assert "--value 'out_size:8,8:20,33:64,64'" in caught.value.hint


JSON = '{"a:b c": {"min": [1], "opt": [2], "max": [3]}, "n": {"min": [], "max": []}}'


def test_json_text_and_file(tmp_path: Path) -> None:
    path = tmp_path / "shapes.json"
    path.write_text(JSON)
    shapes = parse_shape_json(JSON)
    assert shapes == parse_shape_json(str(path))
    assert shapes["a:b c"].opt == (2,)
    assert shapes["n"].opt is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "not valid JSON"),
        ('{"a": {}, "a": {}}', "the key 'a' is there twice"),
        ('{"a": {"min": [1.5]}}', "a.min.0"),
        ('{"a": {"mni": [1]}}', "a.mni"),
        ('{"a": [1, 2]}', "a: "),
        ('{"a":' * 100_000, "not valid JSON"),
    ],
)
def test_wrong_json_is_one_clear_error(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_shape_json(text)
    assert expected in caught.value.message
    path = tmp_path / "s.json"
    path.write_text(text)
    with pytest.raises(OptimizationProfileError) as caught_file:
        parse_shape_json(str(path))
    assert expected in caught_file.value.message


@pytest.mark.parametrize("content", [b"\xff\xfe", b" " * (1 << 20) + b"{}", b"[]", b""])
def test_wrong_json_file_is_one_clear_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "s.json"
    path.write_bytes(content)
    with pytest.raises(OptimizationProfileError, match="--shape-json"):
        parse_shape_json(str(path))


def test_missing_json_file_is_named(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.json", tmp_path / ("x" * 5000), "a\0b"):
        with pytest.raises(OptimizationProfileError, match="cannot be read"):
            parse_shape_json(str(path))


def test_all_options_make_one_table() -> None:
    table = parse_shape_table(
        shapes=["x:1x3"],
        symbols=["S=1:2:3"],
        values=["n:4"],
        shape_json=json.dumps({"y": {"min": [1], "opt": [1], "max": [1]}}),
    )
    assert (set(table.inputs), set(table.symbols), set(table.values)) == ({"x", "y"}, {"S"}, {"n"})


def test_name_given_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="'x' has its sizes already"):
        parse_shape_table(shapes=["x:1", "x:2"])
    with pytest.raises(UsageError, match="'x' has its sizes already"):
        parse_shape_table(shapes=["x:1"], shape_json='{"x": {"min": [1]}}')
    with pytest.raises(UsageError, match="'S' has its sizes already"):
        parse_shape_table(symbols=["S=1", "S=2"])
