"""Optimization profiles: what TensorRT is told of shapes and of the values of shape tensors."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from trtdeploy.core.errors import OptimizationProfileError
from trtdeploy.core.ranges import OptimizationProfile, ShapeRange, ValueRange

from .engine_cases import find_config, run_build
from .standin import VERSIONS, LayerContent, NetworkContent, StandinModule, TensorContent
from .standin import make_trt_module as make

IMAGE = TensorContent("image", shape=(-1, 3, -1, -1))
SIZE = TensorContent("size", dtype="INT32", shape=(2,), is_shape_tensor=True)
FIXED = TensorContent("fixed", shape=(1, 4))
SCALAR = TensorContent("scalar", shape=())


@pytest.fixture(params=VERSIONS)
def trt(request: pytest.FixtureRequest) -> StandinModule:
    """Return the stand-in of each version, whose parser finds a network of varying shapes."""
    trt = make(request.param)
    set_inputs(trt, IMAGE, SIZE, FIXED, SCALAR)
    return trt


def set_inputs(trt: StandinModule, *inputs: TensorContent) -> None:
    """Choose the inputs of the network."""
    layer = LayerContent("resize", "RESIZE", (inputs[0].name,), (TensorContent("y"),))
    trt.set_network(NetworkContent(inputs, (layer,), ("y",)))


def make_profile(name: str, batch: int, size: int) -> OptimizationProfile:
    """Return a profile from batch 1 to `batch` for all four inputs."""
    image = ShapeRange((1, 3, 8, 8), (1, 3, 16, 16), (batch, 3, 32, 32))
    fixed, scalar = ShapeRange((1, 4), (1, 4), (1, 4)), ShapeRange((), (), ())
    dims = ShapeRange((2,), (2,), (2,))
    shapes = {"image": image, "size": dims, "fixed": fixed, "scalar": scalar}
    values = ValueRange((8, 8), (16, 16), (size, size))
    return OptimizationProfile(name, shapes, {"size": values})


def describe(*profiles: OptimizationProfile) -> dict[str, Any]:
    """Return the field of the request."""
    return {"optimization_profiles": profiles}


def test_shapes_and_shape_values(trt: StandinModule, tmp_path: Path) -> None:
    run_build(trt, tmp_path, **describe(make_profile("p", 4, 64)))
    (added,) = trt.calls.select("IBuilderConfig", "add_optimization_profile")
    made: Any = added.args[0]
    assert made.get_shape("image") == [(1, 3, 8, 8), (1, 3, 16, 16), (4, 3, 32, 32)]
    assert made.get_shape_input("size") == [[8, 8], [16, 16], [64, 64]]
    asked = trt.calls.select("IOptimizationProfile", "set_shape")
    assert [record.args[0] for record in asked] == ["image"]  # the rest does not vary


def test_several_profiles_keep_their_order(trt: StandinModule, tmp_path: Path) -> None:
    run_build(trt, tmp_path, **describe(make_profile("a", 2, 32), make_profile("b", 8, 64)))
    added = trt.calls.select("IBuilderConfig", "add_optimization_profile")
    made: list[Any] = [record.args[0] for record in added]
    assert [profile.get_shape("image")[2][0] for profile in made] == [2, 8]
    assert find_config(trt).num_optimization_profiles == 2


def test_a_static_network_takes_none(trt: StandinModule, tmp_path: Path) -> None:
    set_inputs(trt, FIXED, SCALAR)
    run_build(trt, tmp_path, **describe(make_profile("p", 4, 64)))
    assert trt.calls.select("Builder", "create_optimization_profile") == []


def test_varying_shapes_need_one(trt: StandinModule, tmp_path: Path) -> None:
    with pytest.raises(OptimizationProfileError, match=r"of 'image', 'size' vary.*no optimization"):
        run_build(trt, tmp_path)


def test_a_shape_is_missing(trt: StandinModule, tmp_path: Path) -> None:
    profile = make_profile("p", 4, 64)
    shapes = {name: sizes for name, sizes in profile.shapes.items() if name != "image"}
    field = describe(replace(profile, shapes=shapes))
    with pytest.raises(OptimizationProfileError, match="'p' has no shape for input 'image'"):
        run_build(trt, tmp_path, **field)


def test_the_values_of_a_shape_tensor_are_missing(trt: StandinModule, tmp_path: Path) -> None:
    field = describe(replace(make_profile("p", 4, 64), values={}))
    with pytest.raises(OptimizationProfileError, match="'size' is a shape tensor") as info:
        run_build(trt, tmp_path, **field)
    assert "--value 'size:" in info.value.hint


@pytest.mark.parametrize(
    ("method", "kind", "name"),
    [("set_shape", "shapes", "image"), ("set_shape_input", "values", "size")],
)
def test_tensorrt_refuses_a_range(
    method: str, kind: str, name: str, trt: StandinModule, tmp_path: Path
) -> None:
    def refuse(*_args: object, **_kwargs: object) -> None:
        raise RuntimeError("Shape provided for min is inconsistent with other shapes.")

    trt.script[f"IOptimizationProfile.{method}"] = refuse
    said = f"refuses the {kind} .* for input '{name}'.*is inconsistent"
    with pytest.raises(OptimizationProfileError, match=said) as info:
        run_build(trt, tmp_path, **describe(make_profile("p", 4, 64)))
    assert info.value.exit_code == 3


def test_tensorrt_refuses_a_whole_profile(trt: StandinModule, tmp_path: Path) -> None:
    trt.script["IBuilderConfig.add_optimization_profile"] = -1
    with pytest.raises(OptimizationProfileError, match="refuses optimization profile 'p'"):
        run_build(trt, tmp_path, **describe(make_profile("p", 4, 64)))
    assert trt.calls.select("Builder", "build_serialized_network") == []
