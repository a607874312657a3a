"""Optimization profiles: sizes that cannot run, and profiles that are not of this model."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import in_memory
from tests.preflight import models
from trtdeploy.core.ranges import OptimizationProfile, ShapeRange, ValueRange
from trtdeploy.preflight.checking import check_model
from trtdeploy.preflight.finding import Affects, Finding
from trtdeploy.preflight.target import CheckTarget

RTX = CheckTarget("tensorrt_rtx", "1.7.1")


def blockers(
    proto: Any, shapes: dict[str, Any], values: dict[str, Any] | None = None
) -> tuple[Finding, ...]:
    profile = OptimizationProfile(
        "day",
        {name: ShapeRange(*map(tuple, points)) for name, points in shapes.items()},
        {name: ValueRange(*map(tuple, points)) for name, points in (values or {}).items()},
    )
    report = check_model(in_memory(proto), target=RTX, optimization_profiles=[profile])
    return report.blockers


def tied(tokens: int, pos: int, mask: int) -> dict[str, Any]:
    return {
        "tokens": [(1, 8, 16), (2, tokens, 16), (4, 64, 16)],
        "pos": [(8, 16), (pos, 16), (64, 16)],
        "mask": [(1, 8), (2, mask), (4, 64)],
    }


def test_sizes_that_agree_run() -> None:
    assert blockers(models.tied_inputs("S_mask"), tied(32, 32, 32)) == ()


def test_hidden_mismatch_is_found_by_inference() -> None:
    (finding,) = blockers(models.tied_inputs("S_mask"), tied(32, 32, 48))
    assert (finding.code, finding.node) == ("shapes-cannot-run", "mask_mul")
    assert finding.affects is Affects.BOTH
    for words in ("'day' at opt", "'h' [2, 32, 16]", "'m3' [2, 48, 1]", "'tokens' axis 1 = 32",
                  "'mask' axis 1 = 48"):  # fmt: skip
        assert words in finding.message


def test_all_points_of_one_cause_are_one_finding() -> None:
    shapes = tied(32, 32, 48) | {"mask": [(1, 9), (2, 48), (4, 65)]}
    (finding,) = blockers(models.tied_inputs("S_mask"), shapes)
    assert "at min and opt and max" in finding.message


def test_symbol_with_two_sizes_is_named_even_if_broadcasting_hides_it() -> None:
    shapes = tied(32, 32, 32) | {"mask": [(1, 8), (1, 32), (1, 64)]}
    (finding,) = blockers(models.tied_inputs("S"), shapes)
    assert finding.code == "profile-mismatch"
    assert "the symbol 'B' has different sizes: [1, 2, 4] for 'tokens' axis 0" in finding.message


def test_kernel_larger_than_its_image_is_found() -> None:
    points = [(1, 3, 4, 9), (1, 3, 32, 32), (1, 3, 64, 64)]
    (finding,) = blockers(models.convolution(), {"x": points})
    assert (finding.code, finding.node) == ("shapes-cannot-run", "conv")
    assert "at min: an input of [1, 3, 4, 9] is smaller than the kernel" in finding.message


def test_reshape_that_does_not_divide_is_found() -> None:
    points = [(1, 3, 8, 8), (2, 3, 8, 8), (3, 3, 8, 8)]
    found = blockers(models.reshape_to(-1, 384), {"x": points})
    assert {(f.code, f.node) for f in found} == {("shapes-cannot-run", "fold")}


def test_values_of_shape_tensors_are_followed() -> None:
    shapes = {"x": [(1, 4), (2, 4), (4, 4)], "n_pos": [(), (), ()], "size": [(2,), (2,), (2,)]}
    proto = models.shape_tensor_input()
    good = {"n_pos": [(1,), (7,), (64,)], "size": [(1, 4), (1, 8), (2, 8)]}
    assert blockers(proto, shapes, good) == ()
    (finding,) = blockers(proto, shapes, good | {"size": [(1, 4), (3, 3), (2, 8)]})
    assert "at opt: [2, 4] cannot be reshaped to [3, 3]" in finding.message


GOOD = [(1, 3, 32, 32), (4, 3, 64, 64), (8, 3, 128, 128)]


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        ({}, "the input 'x' (Nx3xHxW) is missing"),
        ({"x": GOOD, "images": GOOD}, "the model has no input 'images'"),
        ({"x": [dims[1:] for dims in GOOD]}, "'x' has 4 axes (Nx3xHxW), the profile gives 3"),
        ({"x": [(n, 1, h, w) for n, _, h, w in GOOD]}, "axis 1 is 3 in the model"),
        ({"x": [(5, 3, 32, 32), *GOOD[1:]]}, "axis 0: min 5, opt 4, max 8 are not in order"),
        ({"x": [GOOD[0], (4, 3, 256, 64), GOOD[2]]}, "axis 2: min 32, opt 256, max 128"),
        ({"x": [*GOOD[:2], (-1, 3, 128, 128)]}, "max -1 are not in order"),
        ({"x": [*GOOD[:2], (8, 3, 128, 1 << 40)]}, "larger than any engine accepts"),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_profile_of_another_model_is_refused(shapes: dict[str, Any], words: str) -> None:
    found = [f.message for f in blockers(models.convolution(), shapes)]
    assert any(words in message for message in found), found


def test_shape_tensor_without_values_is_refused() -> None:
    shapes = {"x": [(1, 4)] * 3, "n_pos": [()] * 3, "size": [(2,)] * 3}
    found = {f.message for f in blockers(models.shape_tensor_input(), shapes)}
    assert len([message for message in found if "has no value range" in message]) == 2
