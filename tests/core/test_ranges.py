from __future__ import annotations

import json
from dataclasses import asdict

from trtdeploy.core.ranges import POINTS, OptimizationProfile, ShapeRange, ValueRange


def test_ranges_are_read_by_point() -> None:
    shape = ShapeRange((1, 3), (4, 3), (8, 3))
    values = ValueRange((8,), (32,), (64,))
    assert [shape.at(point) for point in POINTS] == [(1, 3), (4, 3), (8, 3)]
    assert [values.at(point) for point in POINTS] == [(8,), (32,), (64,)]


def test_a_profile_becomes_plain_data_and_back() -> None:
    profile = OptimizationProfile(
        "default",
        {"x": ShapeRange((1,), (2,), (3,)), "n": ShapeRange((), (), ())},
        {"n": ValueRange((4,), (5,), (6,))},
    )
    data = json.loads(json.dumps(asdict(profile)))
    assert OptimizationProfile.from_dict(data) == profile
    assert data == {
        "name": "default",
        "shapes": {
            "x": {"min": [1], "opt": [2], "max": [3]},
            "n": {"min": [], "opt": [], "max": []},
        },
        "values": {"n": {"min": [4], "opt": [5], "max": [6]}},
    }
