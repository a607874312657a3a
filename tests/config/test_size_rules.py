"""Sizes follow what the model says it accepts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import in_memory, model, op, value
from trtdeploy.config.optimization_profile import resolve_shapes
from trtdeploy.config.shape_request import ShapeRequest
from trtdeploy.config.shape_syntax import parse_shape_table
from trtdeploy.config.shape_table import AxisDefaults, AxisSizes
from trtdeploy.core.errors import OptimizationProfileError
from trtdeploy.core.ranges import POINTS
from trtdeploy.core.tensors import SizeRule
from trtdeploy.graph.export_facts import write_export_facts
from trtdeploy.graph.model_inputs import describe_inputs

SHAPE = ("batch", 3, "height", "width")
RULES = (SizeRule("height", 32, 64, 1024), SizeRule("width", 48))


def resolve(*symbols: str, defaults: AxisDefaults | None = None) -> dict[str, tuple[int, ...]]:
    exported = in_memory(model([op("Relu", "x", "y")], [value("x", SHAPE)], [value("y", SHAPE)]))
    write_export_facts(exported, RULES)
    request = ShapeRequest(
        tables=(parse_shape_table(symbols=symbols),), defaults=defaults or AxisDefaults()
    )
    shapes = resolve_shapes(describe_inputs(exported), [request]).require()[0].shapes["x"]
    return {point: shapes.at(point) for point in POINTS}


def test_assumed_sizes_are_legal() -> None:
    assert resolve() == {
        "min": (1, 3, 320, 336), "opt": (4, 3, 640, 624), "max": (8, 3, 1024, 1296),
    }  # fmt: skip


def test_sizes_of_a_profile_are_moved_too() -> None:
    defaults = AxisDefaults(height=AxisSizes(min=10, opt=100, max=5000))
    sizes = resolve(defaults=defaults)
    assert [sizes[point][2] for point in POINTS] == [64, 96, 1024]


def test_sizes_that_complete_a_request_are_legal() -> None:
    sizes = resolve("width=480:480:960", "height=96:128:256")
    assert [sizes[point][3] for point in POINTS] == [480, 480, 960]


@pytest.mark.parametrize(
    ("symbol", "reason"),
    [
        ("height=64:100:128", "opt 100; expected multiples of 32 from 64 up to 1024"),
        ("height=32:64:128", "min 32"),
        ("height=64:64:2048", "max 2048"),
        ("width=100", "multiples of 48"),
    ],
)
def test_sizes_that_the_model_does_not_take_are_refused(symbol: str, reason: str) -> None:
    with pytest.raises(OptimizationProfileError, match=reason):
        resolve(symbol)


@given(st.integers(1, 4096), st.integers(1, 128), st.integers(1, 500), st.integers(0, 4000))
def test_nearest_is_accepted_and_keeps_order(size: int, step: int, low: int, span: int) -> None:
    rule = SizeRule("s", step, low, max(low, step) + span + step)
    assert rule.accepts(rule.nearest(size))
    assert rule.nearest(size) <= rule.nearest(size + 1)
    if rule.accepts(size):
        assert rule.nearest(size) == size


def test_rules_read_like_sentences() -> None:
    assert str(SizeRule("s", 32, 64, 512)) == "multiples of 32 from 64 up to 512"
    assert str(SizeRule("s", 32, 32)) == "multiples of 32"
    assert str(SizeRule("s", max=512)) == "sizes up to 512"
