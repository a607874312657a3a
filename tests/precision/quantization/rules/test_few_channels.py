from __future__ import annotations

import pytest

from tests.builders import constant, model, op, random_array, value
from tests.precision.layer_rule_runs import find_kept_layers, tower
from tests.precision.quantized_models import conv_weight, image_model
from trtdeploy.precision.quantization.rules.few_channels import KeepFewChannelsRule

FORMS = [
    ((16, 16, 3, 3), 1, "int8", None),
    ((16, 8, 3, 3), 2, "int8", 8),
    ((16, 4, 3, 3), 4, "fp8", 4),
]


@pytest.mark.parametrize(("shape", "groups", "recipe", "channels"), FORMS)
def test_channels_of_a_group_count(
    shape: tuple[int, ...], groups: int, recipe: str, channels: int | None
) -> None:
    nodes, weights = tower("x", "t")
    tested = op("Conv", "t w", "y", "tested", group=groups)
    proto = image_model([*nodes, tested], [*weights, constant("w", random_array(*shape))])
    kept = find_kept_layers(KeepFewChannelsRule(), proto, recipe)
    assert kept.keys() == (set() if channels is None else {"tested"})
    if channels is not None:
        assert f"sums over {channels} channels" in kept["tested"]


@pytest.mark.parametrize(
    ("op_type", "operands", "attributes", "shape", "kept"),
    [
        ("MatMul", "h w", {}, (8, 64), True),
        ("MatMul", "h w", {}, (64, 8), False),
        ("MatMul", "w h", {}, (64, 8), True),
        ("MatMul", "h w", {}, (3, 8, 64), True),
        ("Gemm", "h w", {"transB": 1}, (64, 8), True),
        ("Gemm", "h w", {"transB": 1}, (8, 64), False),
        ("Gemm", "w h", {"transA": 1}, (8, 64), True),
        ("ConvTranspose", "h w", {"group": 2}, (16, 64, 2, 2), True),
        ("ConvTranspose", "h w", {}, (16, 4, 2, 2), False),
    ],
)
def test_the_summed_axis_of_every_layer(
    op_type: str, operands: str, attributes: dict[str, int], shape: tuple[int, ...], kept: bool
) -> None:
    nodes, weights = tower("x", "t")
    tested = op(op_type, operands, "y", "tested", **attributes)
    proto = model(
        [*nodes, tested],
        [value("x", ("N", 16, 8, 8)), value("h", None)],
        [value("y", None), value("t", None)],
        [*weights, constant("w", random_array(*shape))],
    )
    assert ("tested" in find_kept_layers(KeepFewChannelsRule(), proto)) is kept


def test_off_in_small_models() -> None:
    tested = op("Conv", "x w", "y", "tested")
    proto = image_model([tested], [conv_weight("w", 8, 3)], channels=3)
    assert not find_kept_layers(KeepFewChannelsRule(), proto)
