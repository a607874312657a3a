from __future__ import annotations

from collections.abc import Mapping

import pytest
from onnx import ModelProto

from tests.builders import op
from tests.precision.quantized_models import conv, conv_weight, image_model, make_plan
from trtdeploy.core.errors import InputError
from trtdeploy.precision.quantization.plan import QuantizationPlan
from trtdeploy.precision.quantization.scale_resolution import resolve_scales

WEIGHTS = [conv_weight("w", 16, 16), conv_weight("u", 16, 32), conv_weight("v", 16, 48)]
JOINED = image_model(
    [
        op("Relu", "x", "a"), op("Exp", "x", "b"),
        op("Concat", "a b", "j", "join", axis=1),
        conv("a w", "c"), conv("j u", "d"), op("Add", "d c", "s"), op("Sqrt", "s", "y"),
    ],
    WEIGHTS,
)  # fmt: skip
"""``a`` is read by a convolution and joined with ``b``."""


def resolve(proto: ModelProto, amax: Mapping[str, float]) -> QuantizationPlan:
    plan, index = make_plan(proto)
    return resolve_scales(index, plan, dict.fromkeys(plan.measured, 1.0) | dict(amax))


def groups(plan: QuantizationPlan) -> dict[tuple[str, int], str]:
    return {(o.node, o.slot): o.group for o in plan.operands}


def test_equal_ranges_share_one_scale() -> None:
    found = groups(resolve(JOINED, {"a": 1.0, "b": 1.5, "j": 1.5}))
    shared = {found[edge] for edge in (("join", 0), ("join", 1), ("c", 0), ("d", 0))}
    assert shared == {"j"}


def test_a_layer_keeps_a_finer_scale_where_the_shared_one_costs_more_than_a_bit() -> None:
    found = groups(resolve(JOINED, {"a": 0.7, "b": 1.5, "j": 1.5}))
    assert (found["c", 0], found["join", 0], found["d", 0]) == ("a", "j", "j")


@pytest.mark.parametrize(("smallest", "shares"), [(0.2, True), (0.1875, True), (0.18, False)])
def test_members_within_three_bits_share(smallest: float, shares: bool) -> None:
    plan = resolve(JOINED, {"a": smallest, "b": 1.5, "j": 1.5})
    assert (("join", 0) in groups(plan)) is shares
    assert groups(plan)["d", 0] == "j"
    assert bool(plan.notes) is not shares


def test_a_concat_that_shares_nothing_is_explained() -> None:
    plan = resolve(JOINED, {"a": 0.1, "b": 2.0, "j": 2.0})
    assert plan.notes == (
        "Concat 'join' stays in floating point: the ranges of what it joins (0.1 to 2) differ "
        "20x, and one scale serves 8x at most",
    )
    assert [o.node for o in plan.operands] == ["c", "d", "s"]


def test_constant_zeros_fit_any_scale() -> None:
    found = groups(resolve(JOINED, {"a": 0.0, "b": 1.5, "j": 1.5}))
    assert {found["join", 0], found["join", 1], found["c", 0]} == {"j"}


def test_the_larger_amax_names_the_group() -> None:
    found = groups(resolve(JOINED, {"a": 1.4, "b": 1.5, "j": 1.2}))
    assert set(found.values()) >= {"b"}
    assert found["join", 0] == found["join", 1] == found["d", 0] == "b"


def test_what_only_fed_a_concat_that_stays_apart_stays_apart_too() -> None:
    nodes = [
        op("Relu", "x", "a"), op("Exp", "x", "b"), op("Sigmoid", "x", "e"),
        op("MaxPool", "a", "p", "pool", kernel_shape=[1, 1]),
        op("Concat", "p b", "i", "inner", axis=1),
        op("Concat", "i e", "j", "outer", axis=1),
        conv("j v", "y"),
    ]  # fmt: skip
    plan = resolve(
        image_model(nodes, WEIGHTS), {"a": 1.0, "b": 1.0, "i": 1.0, "e": 20.0, "j": 20.0}
    )
    assert list(groups(plan)) == [("y", 0)]
    near = {"a": 1.0, "b": 1.0, "i": 1.0, "e": 4.0, "j": 4.0}
    plan = resolve(image_model(nodes, WEIGHTS), near)
    assert set(groups(plan).values()) == {"j"}  # no layer reads the finer ones
    assert len(plan.operands) == 6


def test_a_missing_amax_names_the_value() -> None:
    plan, index = make_plan(JOINED)
    with pytest.raises(InputError, match="no amax for 'a' and 3 more values") as info:
        resolve_scales(index, plan, {"z": 1.0})
    assert "Calibrate again" in info.value.hint
