"""Made-up inputs: right types and ranges, and models that run on them in ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto, ValueInfoProto

from tests.builders import BOOL, FLOAT, INT32, INT64, UINT8, constant, model, normalized, op, value
from trtdeploy.core.errors import InputError
from trtdeploy.graph.index import build_index
from trtdeploy.samples.synthetic.making import SyntheticFeeds, make_synthetic_feeds
from trtdeploy.samples.synthetic.rules import make_images, make_runs

Shapes = dict[str, tuple[int, ...]]


def make(
    proto: ModelProto, shapes: Shapes, seed: int = 0, **values: tuple[int, ...]
) -> SyntheticFeeds:
    return make_synthetic_feeds(build_index(normalized(proto)), shapes, values, seed=seed)


def run(proto: ModelProto, feeds: dict[str, Any]) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return list(session.run(None, feeds))


def one_input(name: str, dtype: int, shape: Any) -> ModelProto:
    """Make a model that does nothing with its input, so that only the name speaks."""
    return model(
        [op("Identity", name, "y")], [value(name, shape, dtype)], [value("y", None, dtype)]
    )


def one_feed(
    name: str, dtype: int, shape: tuple[int, ...], declared: Any = None
) -> tuple[Any, str]:
    found = make(one_input(name, dtype, declared or shape), {name: shape})
    return found.feeds[name], found.assumptions[name]


def degenerate_ranges() -> ModelProto:
    """Like case o08: a convolution over images."""
    return model(
        [op("Conv", "x w", "c", pads=[1, 1, 1, 1]), op("GlobalAveragePool", "c", "y")],
        [value("x", ("N", 3, "H", "W"))],
        [value("y", None)],
        [constant("w", np.ones((2, 3, 3, 3)))],
    )


def tied_symbols() -> ModelProto:
    """Like case o14: B and S occur in several inputs; the mask multiplies."""
    return model(
        [
            op("Add", "tokens pos", "h"),
            op("Cast", "mask", "m", to=FLOAT),
            op("Unsqueeze", "m two", "m3"),
            op("Mul", "h m3", "y"),
        ],
        [value("tokens", ("B", "S", 4)), value("pos", ("S", 4)), value("mask", ("B", "S"), INT32)],
        [value("y", None)],
        [constant("two", [2], np.int64)],
    )


def shape_tensor(rows: int = 64) -> ModelProto:
    """Like case o15: one input is a size, another the end of a range that looks up rows."""
    return model(
        [
            op("Shape", "x", "s", start=0, end=2),
            op("Concat", "s out_size", "sizes", axis=0),
            op("Resize", "x - - sizes", "y", mode="nearest"),
            op("Range", "zero n_pos one", "r"),
            op("Gather", "table r", "pos"),
        ],
        [value("x", (1, 3, "H", "W")), value("out_size", (2,), INT64), value("n_pos", (), INT64)],
        [value("y", None), value("pos", None)],
        [
            constant("zero", 0, np.int64),
            constant("one", 1, np.int64),
            constant("table", np.zeros((rows, 2))),
        ],
    )


def integer_inputs() -> ModelProto:
    """Like case o17: a uint8 image, ids of ten rows, a condition."""
    return model(
        [
            op("Cast", "image", "f", to=FLOAT),
            op("Transpose", "f", "t", perm=[0, 3, 1, 2]),
            op("Gather", "emb ids", "e"),
            op("Where", "use e zero", "e2"),
            op("Add", "t e2", "y"),
        ],
        [
            value("image", ("N", 8, 8, 3), UINT8),
            value("ids", (1,), INT64),
            value("use", (1,), BOOL),
        ],
        [value("y", None)],
        [constant("emb", np.zeros((10, 3, 1, 1))), constant("zero", 0.0)],
    )


SIZE = st.integers(1, 9)
SEED = st.integers(0, 2**32 - 1)


@settings(max_examples=25)
@given(n=SIZE, h=SIZE, w=SIZE, seed=SEED)
def test_images_run_and_are_finite(n: int, h: int, w: int, seed: int) -> None:
    proto = degenerate_ranges()
    found = make(proto, {"x": (n, 3, h, w)}, seed)
    images = found.feeds["x"]
    assert (images.shape, images.dtype) == ((n, 3, h, w), np.float32)
    assert images.min() >= 0
    assert images.max() <= 1
    assert all(np.isfinite(result).all() for result in run(proto, found.feeds))


@settings(max_examples=25)
@given(b=SIZE, s=SIZE, seed=SEED)
def test_tied_symbols_run(b: int, s: int, seed: int) -> None:
    proto = tied_symbols()
    found = make(proto, {"tokens": (b, s, 4), "pos": (s, 4), "mask": (b, s)}, seed)
    run(proto, found.feeds)
    mask = found.feeds["mask"]
    assert mask.dtype == np.int32
    assert (mask.sum(1) >= 1).all()
    assert (np.diff(mask, axis=1) <= 0).all()  # ones first, then zeros


@settings(max_examples=25)
@given(size=st.tuples(SIZE, SIZE), n=st.integers(1, 64), seed=SEED)
def test_shape_tensors_hold_the_values_of_the_profile(
    size: tuple[int, int], n: int, seed: int
) -> None:
    proto = shape_tensor()
    shapes: Shapes = {"x": (1, 3, 4, 5), "out_size": (2,), "n_pos": ()}
    found = make(proto, shapes, seed, out_size=size, n_pos=(n,))
    y, pos = run(proto, found.feeds)
    assert (y.shape, pos.shape) == ((1, 3, *size), (n, 2))
    assert found.assumptions["n_pos"] == "the optimization profile's values"


def test_shape_tensors_without_values_stay_usable() -> None:
    proto = shape_tensor(rows=3)
    shapes: Shapes = {"x": (1, 3, 4, 5), "out_size": (2,), "n_pos": ()}
    for seed in range(20):
        feeds = make(proto, shapes, seed).feeds
        assert 1 <= int(feeds["n_pos"]) <= 3
        run(proto, feeds)


def test_values_that_the_model_cannot_use_are_pointed_out() -> None:
    shapes: Shapes = {"x": (1, 3, 4, 5), "out_size": (2,), "n_pos": ()}
    found = make(shape_tensor(rows=8), shapes, out_size=(2, 2), n_pos=(9,))
    assert int(found.feeds["n_pos"]) == 9
    assert "above 8, the most that the model can use" in found.assumptions["n_pos"]
    assert "has 8 rows" in found.assumptions["n_pos"]


@settings(max_examples=25)
@given(n=SIZE, seed=SEED)
def test_integer_inputs_run(n: int, seed: int) -> None:
    proto = integer_inputs()
    found = make(proto, {"image": (n, 8, 8, 3), "ids": (1,), "use": (1,)}, seed)
    run(proto, found.feeds)
    kinds = {name: array.dtype.name for name, array in found.feeds.items()}
    assert kinds == {"image": "uint8", "ids": "int64", "use": "bool"}
    assert 0 <= found.feeds["ids"][0] < 10
    image = found.feeds["image"]
    assert [image[i].min() for i in range(n)] == [0] * n
    assert [image[i].max() for i in range(n)] == [255] * n


def test_everything_is_flagged_and_explained() -> None:
    found = make(integer_inputs(), {"image": (1, 8, 8, 3), "ids": (1,), "use": (1,)}, seed=3)
    assert found.is_synthetic
    assert found.description == "synthetic (seed 3)"
    assert found.notes == (
        "synthetic input 'image': smooth random images with edges, from 0 to 255",
        "synthetic input 'ids': whole numbers from 0 to 9: Gather 'e' has 10 rows",
        "synthetic input 'use': ones, then zeros, as for padding: the model reads it as true or "
        "false",
    )


def test_values_depend_on_seed_and_name_alone() -> None:
    shapes: Shapes = {"tokens": (2, 5, 4), "pos": (5, 4), "mask": (2, 5)}
    first = make(tied_symbols(), shapes, seed=1).feeds
    again = make(tied_symbols(), shapes, seed=1).feeds
    other = make(tied_symbols(), shapes, seed=2).feeds
    assert all(np.array_equal(first[name], again[name]) for name in shapes)
    assert not np.array_equal(first["tokens"], other["tokens"])
    assert not np.array_equal(first["tokens"].ravel()[:20], first["pos"].ravel())
    alone = make(one_input("tokens", FLOAT, ("B", "S", 4)), {"tokens": (2, 5, 4)}, seed=1).feeds
    np.testing.assert_array_equal(alone["tokens"], first["tokens"])


@pytest.mark.parametrize(
    ("name", "dtype", "shape", "expected"),
    [
        ("attention_mask", INT64, (2, 4), "its name says mask"),
        ("attention_mask", FLOAT, (2, 1, 4, 4), "its name says mask"),
        ("x", FLOAT, (2, 1, 8, 8), "smooth random images"),
        ("x", FLOAT, (2, 8, 8, 3), "smooth random images"),
        ("x", FLOAT, (2, 5, 8, 8), "standard normal"),
        ("x", UINT8, (2, 9), "from 0 to 255"),
        ("x", TensorProto.INT8, (1, 3, 8, 8), "from -128 to 127"),
        ("x", INT64, (3,), "from 0 to 7"),
        ("x", BOOL, (), "by chance"),
        ("scale_factor", FLOAT, (1, 2), "no scaling"),
        ("x", TensorProto.FLOAT16, (2, 9), "standard normal"),
        ("x", TensorProto.BFLOAT16, (2, 9), "standard normal"),
        ("x", TensorProto.DOUBLE, (2, 9), "standard normal"),
        ("x", TensorProto.COMPLEX64, (2, 9), "standard normal"),
        ("x", TensorProto.FLOAT8E4M3FN, (2, 9), "standard normal"),
        ("x", TensorProto.INT4, (2, 9), "from 0 to 7"),
        ("x", TensorProto.UINT4, (2, 9), "from 0 to 7"),
        ("x", TensorProto.STRING, (2,), "different words"),
        ("x", FLOAT, (0, 4), "standard normal"),
        ("mask", INT64, (2, 0), "mask"),
        ("x", FLOAT, (0, 3, 8, 8), "smooth"),
    ],
)
def test_names_types_and_ranks(
    name: str, dtype: int, shape: tuple[int, ...], expected: str
) -> None:
    array, text = one_feed(name, dtype, shape)
    assert expected in text
    assert array.shape == shape
    assert array.flags.c_contiguous


def speech(inputs: list[ValueInfoProto]) -> ModelProto:
    return model([op("Identity", inputs[0].name, "y")], inputs, [value("y", None, INT64)])


def test_lengths_and_sizes_follow_the_other_inputs() -> None:
    proto = speech([value("ids", ("N", "seq"), INT64), value("ids_lengths", ("N",), INT64)])
    feeds = make(proto, {"ids": (2, 11), "ids_lengths": (2,)}).feeds
    assert feeds["ids_lengths"].tolist() == [11, 11]
    proto = speech(
        [
            value("orig_target_sizes", ("N", 2), INT64),
            value("images", ("N", 3, "H", "W")),
            value("image_width", (), INT64),
        ]
    )
    shapes: Shapes = {"orig_target_sizes": (2, 2), "images": (2, 3, 16, 24), "image_width": ()}
    feeds = make(proto, shapes).feeds
    assert feeds["orig_target_sizes"].tolist() == [[16, 24]] * 2
    assert int(feeds["image_width"]) == 24


def test_token_types_and_positions() -> None:
    proto = model(
        [
            op("Gather", "types token_type_ids", "a"),
            op("Gather", "places position_ids", "b"),
            op("Add", "a b", "y"),
        ],
        [value("token_type_ids", ("N", "S"), INT64), value("position_ids", ("N", "S"), INT64)],
        [value("y", None)],
        [constant("types", np.zeros((2, 4))), constant("places", np.zeros((4, 4)))],
    )
    feeds = make(proto, {"token_type_ids": (2, 6), "position_ids": (2, 6)}).feeds
    assert not feeds["token_type_ids"].any()
    assert feeds["position_ids"].tolist() == [[0, 1, 2, 3, 0, 1]] * 2
    run(proto, feeds)


def test_setting_is_the_number_it_is_compared_with() -> None:
    proto = model(
        [op("Equal", "sr rate", "y")],
        [value("sr", (), INT64)],
        [value("y", None, BOOL)],
        [constant("rate", 16000, np.int64)],
    )
    assert int(make(proto, {"sr": ()}).feeds["sr"]) == 16000


def test_divisors_are_not_zero() -> None:
    proto = model(
        [op("Div", "x by", "y")],
        [value("x", ("N",), INT64), value("by", ("N",), INT64)],
        [value("y", None, INT64)],
    )
    for seed in range(5):
        assert make(proto, {"x": (50,), "by": (50,)}, seed).feeds["by"].min() >= 1


@pytest.mark.parametrize(
    ("shapes", "values", "expected"),
    [
        ({}, {}, "input 'x': no shape given"),
        ({"x": (2,)}, {}, r"given shape \[2\], expected \['N', 4\]"),
        ({"x": (2, 5)}, {}, r"given shape \[2, 5\]"),
        ({"x": (2, 4)}, {"x": (1, 2)}, "given 2 values, expected 8"),
        ({"x": (0, 4)}, {"x": (1,)}, "given 1 values, expected 0"),
        ({"x": (1, 4)}, {"x": (1, 2, 3, 2**70)}, "expected int64"),
    ],
)
def test_wrong_requests_are_explained(
    shapes: Shapes, values: dict[str, tuple[int, ...]], expected: str
) -> None:
    index = build_index(normalized(one_input("x", INT64, ("N", 4))))
    with pytest.raises(InputError, match=expected):
        make_synthetic_feeds(index, shapes, values)


@given(shape=st.lists(st.integers(1, 6), min_size=0, max_size=4), seed=SEED)
def test_runs_have_a_one_in_every_row(shape: list[int], seed: int) -> None:
    mask = make_runs(np.random.default_rng(seed), tuple(shape))
    assert mask.shape == tuple(shape)
    assert (np.atleast_1d(mask)[..., 0] == 1).all()
    assert (np.diff(np.atleast_1d(mask), axis=-1) <= 0).all()


def test_images_are_smooth_with_edges_and_differ() -> None:
    images = make_images(np.random.default_rng(0), (3, 3, 96, 64), 1)
    step = np.abs(np.diff(images, axis=3))
    noise = np.abs(np.diff(np.random.default_rng(0).uniform(0, 1, images.shape), axis=3))
    assert step.mean() < noise.mean() / 8  # neighbours agree, unlike in white noise
    assert step.max() > 10 * np.median(step)  # but not across an edge
    assert (images.reshape(3, -1).max(1) == 1).all()
    assert (images.reshape(3, -1).min(1) == 0).all()
    assert np.abs(images[0] - images[1]).mean() > 0.05
    assert np.corrcoef(images[0, 0].ravel(), images[0, 1].ravel())[0, 1] > 0.3
