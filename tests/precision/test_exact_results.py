"""Rounding of single values, and the results that need none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import NodeProto

from tests.builders import (
    BFLOAT16,
    FLOAT,
    FLOAT16,
    constant,
    model,
    op,
    random_array,
    value,
)
from tests.precision.emulated_runs import (
    NUMPY,
    between_casts,
    emulate_and_run,
    narrow_model,
)
from tests.precision.typed_models import run_reference

FP16 = pytest.param(FLOAT16, id="float16")
BF16 = pytest.param(BFLOAT16, id="bfloat16")

# subnormals of both types, ties, the last values before infinity and the first at it
CORNERS = [
    0.0, 1e-45, 2.0**-133, 2.0**-126, 2.0**-25, 1.5 * 2.0**-24, 2.0**-14, 1.0, 1 + 2.0**-11,
    1 + 3 * 2.0**-11, 1 + 2.0**-8, 1 + 3 * 2.0**-8, 65504.0, 65519.99, 65520.0, 3.3961e38,
    3.3961776e38, 3.4e38, np.inf, np.nan,
]  # fmt: skip


@pytest.mark.parametrize("code", [FP16, BF16])
def test_a_stored_value_is_rounded_as_numpy_rounds(code: int, tmp_path: Path) -> None:
    proto = model(
        [op("Cast", "x", "low", to=code), op("Cast", "low", "y", to=FLOAT)],
        [value("x", ("N",))],
        [value("y", ("N",))],
    )
    x = np.array([*CORNERS, *(-c for c in CORNERS)], np.float32)
    with np.errstate(over="ignore"):
        expected = x.astype(NUMPY[code]).astype(np.float32)
    found = emulate_and_run(proto, {"x": x}, tmp_path)[0]
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


@pytest.mark.parametrize("op_type", ["MaxPool", "GlobalMaxPool"])
def test_infinity_survives_pooling(op_type: str, tmp_path: Path) -> None:
    pads = {"kernel_shape": [2, 2], "pads": [1, 1, 0, 0]} if op_type == "MaxPool" else {}
    nodes = [op(op_type, "x", "p", **pads), op("IsInf", "p", "i"), op("Cast", "i", "y", to=FLOAT16)]
    proto = narrow_model(nodes, shape=(1, 1, "H", "W"))
    x = np.full((1, 1, 2, 2), -np.inf, np.float16)
    assert np.all(emulate_and_run(proto, {"x": x}, tmp_path)[0] == 1)


@pytest.mark.parametrize("bounds", ["x", "x low", "x - high"])
@pytest.mark.parametrize("code", [FP16, BF16])
def test_a_clip_without_a_bound_lets_infinity_through(
    bounds: str, code: int, tmp_path: Path
) -> None:
    bound = [constant("low", -1, NUMPY[code]), constant("high", 1, NUMPY[code])]
    nodes = [op("Clip", bounds.replace("x", "a"), "b")]
    proto = between_casts(nodes, code, constants=[b for b in bound if b.name in bounds])
    x = np.array([[np.inf, -np.inf, 0.5, -0.5]] * 4, np.float32)
    found = emulate_and_run(proto, {"x": x}, tmp_path)[0]
    np.testing.assert_array_equal(found, run_reference(proto, {"x": x})[0])


@pytest.mark.parametrize("code", [FP16, BF16])
@pytest.mark.parametrize(
    ("nodes", "names"),
    [
        ([op("Reshape", "a flat", "b")], "flat"),
        ([op("Tile", "a flat2", "b")], "flat2"),
        ([op("TopK", "a two", "b i")], "two"),
        ([op("Pad", "a pads filler", "b")], "pads filler"),
        ([op("ScatterND", "a place update", "b")], "place update"),
        ([op("ScatterND", "a place update", "b", reduction="add")], "place update"),
        ([op("Trilu", "a", "b")], ""),
        ([op("Compress", "a pick", "b", axis=1)], "pick"),
        ([op("Resize", "a - twice", "b", mode="nearest")], "twice"),
        ([op("Resize", "a - twice", "b", mode="linear")], "twice"),
        ([op("OneHot", "where depth ends", "h"), op("Add", "h a", "b")], "where depth ends"),
        ([op("EyeLike", "a", "h"), op("Add", "h a", "b")], ""),
        ([op("ReduceMax", "a", "h", axes=[1]), op("Add", "h a", "b")], ""),
        ([op("Hardmax", "a", "b")], ""),
    ],
    ids=lambda given: given[0].op_type if isinstance(given, list) else "",
)
def test_operators_that_copy_or_select_agree_with_the_reference(
    nodes: list[NodeProto], names: str, code: int, tmp_path: Path
) -> None:
    narrow = NUMPY[code]
    known = [
        constant("flat", [2, -1], np.int64), constant("flat2", [2, 2], np.int64),
        constant("two", [2], np.int64), constant("pads", [0, 1, 0, 0], np.int64),
        constant("filler", 0.1, narrow), constant("place", [[1]], np.int64),
        constant("update", [[0.1, 0.2, 0.3, 1e-7]], narrow),
        constant("pick", [True, False, True, False], np.bool_), constant("twice", [1, 2]),
        constant("where", [0, 1, 3, 2], np.int64), constant("depth", 4, np.int64),
        constant("ends", [0.1, 0.3], narrow),
    ]  # fmt: skip
    used = [tensor for tensor in known if tensor.name in names.split()]
    proto = between_casts(nodes, code, constants=used)
    feeds = {"x": random_array(4, 4, scale=100)}
    found = emulate_and_run(proto, feeds, tmp_path)[0]
    expected = run_reference(proto, feeds)[0]
    linear = any(a.s == b"linear" for node in nodes for a in node.attribute)
    np.testing.assert_allclose(found, expected, rtol=2.0**-7 if linear else 0)
    np.testing.assert_array_equal(found, found.astype(narrow).astype(np.float32))
