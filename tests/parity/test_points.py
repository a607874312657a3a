"""Which shapes are run, and where the batch is."""

from __future__ import annotations

import numpy as np

from trtdeploy.config.batch_layout import BatchLayout, find_free_batch
from trtdeploy.core.dtypes import DType
from trtdeploy.core.ranges import OptimizationProfile, ShapeRange, ValueRange
from trtdeploy.core.tensors import TensorSpec
from trtdeploy.parity.points import find_independence_points, find_points
from trtdeploy.samples.batch_parts import (
    count_samples,
    join_parts,
    split_feeds,
)

BATCH = BatchLayout({"x": 0}, {"y": 0})


def make_profile(low: int, usual: int, high: int, name: str = "p") -> OptimizationProfile:
    sizes = ShapeRange((low, 3, 32), (usual, 3, 64), (high, 3, 128))
    return OptimizationProfile(name, {"x": sizes, "scale": ShapeRange((), (), ())})


def test_corners_then_odd_batches() -> None:
    points = find_points([make_profile(1, 4, 8)], BATCH)
    assert [point.name for point in points] == ["min", "opt", "max", "batch 3", "batch 7"]
    assert [point.shapes["x"] for point in points] == [
        (1, 3, 32), (4, 3, 64), (8, 3, 128), (3, 3, 64), (7, 3, 64),
    ]  # fmt: skip
    assert all(point.shapes["scale"] == () for point in points)


def test_equal_corners_are_one_point() -> None:
    fixed = OptimizationProfile("p", {"x": ShapeRange((2, 3), (2, 3), (2, 3))})
    assert [point.name for point in find_points([fixed], BATCH)] == ["min = opt = max"]


def test_corners_that_differ_in_values_only_are_kept() -> None:
    sizes = ShapeRange((2,), (2,), (2,))
    values = {"size": ValueRange((8, 8), (16, 16), (32, 32))}
    points = find_points([OptimizationProfile("p", {"size": sizes}, values)])
    assert [point.values["size"] for point in points] == [(8, 8), (16, 16), (32, 32)]


def test_every_optimization_profile_is_run() -> None:
    points = find_points([make_profile(1, 1, 2, "a"), make_profile(1, 1, 2, "b")], BATCH)
    assert {point.optimization_profile for point in points} == {"a", "b"}
    assert len(points) == 6


def test_an_odd_batch_that_is_a_corner_is_not_run_twice() -> None:
    points = find_points([make_profile(1, 3, 5)], BATCH)
    assert [point.name for point in points] == ["min", "opt", "max"]


def test_odd_batches_change_every_input_of_the_batch() -> None:
    ids = ShapeRange((1, 8), (2, 8), (4, 8))
    mask = ShapeRange((8, 1), (8, 2), (8, 4))
    layout = BatchLayout({"ids": 0, "mask": 1})
    points = find_points([OptimizationProfile("p", {"ids": ids, "mask": mask})], layout)
    odd = points[-1]
    assert (odd.name, odd.shapes["ids"], odd.shapes["mask"]) == ("batch 3", (3, 8), (8, 3))


def test_batch_independence_needs_room_for_two_halves() -> None:
    point = find_independence_points([make_profile(1, 4, 8)], BATCH)[0]
    assert (point.name, point.shapes["x"]) == ("batch independence", (2, 3, 64))
    assert find_independence_points([make_profile(2, 4, 8)], BATCH)[0].shapes["x"][0] == 4
    assert find_independence_points([make_profile(1, 1, 1)], BATCH) == ()
    assert find_independence_points([make_profile(1, 4, 8)], None) == ()


def spec(name: str, *shape: int | str) -> TensorSpec:
    return TensorSpec(name, DType.FLOAT32, shape)


def test_the_batch_is_found_by_symbol() -> None:
    inputs = [spec("x", "N", 3, "H", "W"), spec("mask", 7, "N"), spec("scale")]
    outputs = [spec("y", "N", 5), spec("t", 5, "N"), spec("anchors", 1, 100)]
    layout = find_free_batch(inputs, outputs)
    assert layout is not None
    assert layout.inputs == {"x": 0, "mask": 1}
    assert layout.outputs == {"y": 0, "t": 1}


def test_a_fixed_batch_is_none() -> None:
    assert find_free_batch([spec("x", 4, 3)]) is None
    assert find_free_batch([spec("scale")]) is None


def test_feeds_are_cut_along_their_own_axis() -> None:
    layout = BatchLayout({"x": 0, "mask": 1})
    feeds = {"x": np.arange(6).reshape(3, 2), "mask": np.arange(3)[None], "k": np.array(7)}
    first, second = split_feeds(feeds, layout, (1, 2))
    assert (first["x"].tolist(), second["x"].tolist()) == ([[0, 1]], [[2, 3], [4, 5]])
    assert (first["mask"].tolist(), second["mask"].tolist()) == ([[0]], [[1, 2]])
    assert first["k"] == second["k"] == 7
    assert (count_samples(feeds, layout), count_samples(feeds, None)) == (3, 1)


def test_parts_are_joined_along_whichever_axis_adds_up() -> None:
    parts = [{"y": np.zeros((5, 1))}, {"y": np.ones((5, 2))}]
    (joined,) = join_parts(parts, {"y": np.zeros((5, 3))}, BatchLayout({"x": 0}))
    np.testing.assert_array_equal(joined["y"], [[0, 1, 1]] * 5)


def test_parts_are_joined_where_the_output_has_its_batch() -> None:
    layout = BatchLayout({"x": 0}, {"t": 1})
    parts = [{"t": np.zeros((5, 1)), "y": np.zeros((1, 2)), "c": np.ones((1, 9))}] * 2
    whole = {"t": np.zeros((5, 2)), "y": np.zeros((2, 2)), "c": np.ones((1, 9))}
    first, second = join_parts(parts, whole, layout)
    assert first["c"] is parts[0]["c"]
    assert second["c"] is parts[1]["c"]
    assert {name: array.shape for name, array in first.items()} == {
        "t": (5, 2), "y": (2, 2), "c": (1, 9),
    }  # fmt: skip
