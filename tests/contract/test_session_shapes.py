"""Sizes: optimization profiles, shape tensors, and outputs whose size depends on the data."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tests.backends.fake_device_memory import FakeDeviceMemory
from trtdeploy.core.errors import EngineMismatchError, ExecutionError, FeedError, NotPossibleError
from trtdeploy.core.ranges import OptimizationProfile, ShapeRange, ValueRange

from .session_cases import Array, ScriptedEngine, Shapes, open_scripted, ramp
from .standin import VERSIONS, StandinModule, TensorContent, make_trt_module

IMAGE = TensorContent("x", shape=(-1, 3))
RESULT = TensorContent("y", shape=(-1, 3))
SIZE = TensorContent("size", dtype="INT32", shape=(2,), is_shape_tensor=True)


@pytest.fixture(params=VERSIONS)
def trt(request: pytest.FixtureRequest) -> StandinModule:
    """Return the stand-in of each version."""
    return make_trt_module(request.param)


def list_selected(trt: StandinModule) -> list[object]:
    """Return the optimization profiles that were chosen, in order."""
    chosen = trt.calls.select("IExecutionContext", "set_optimization_profile_async")
    return [record.args[0] for record in chosen]


SMALL, LARGE, OTHER = ((1, 3), (1, 3), (2, 3)), ((1, 3), (4, 3), (8, 3)), ((6, 3), (6, 3), (6, 3))


def make_ranges(*points: Any) -> dict[str, Any]:
    """Return the fields of an engine with one optimization profile per entry."""
    return {"profiles": [{"x": entry} for entry in points], "values": [{}] * len(points)}


def test_the_most_special_profile_that_fits_is_chosen(trt: StandinModule) -> None:
    session, _, _ = open_scripted(trt, ScriptedEngine(**make_ranges(LARGE, SMALL, OTHER)))
    trt.calls.clear()
    for batch in (1, 2, 3, 6, 1):
        x = ramp(batch, 3)
        assert np.array_equal(session.run({"x": x})["y"], x * 2)
    assert list_selected(trt) == [1, 0, 2, 1]


def test_sizes_are_set_again_after_a_change_of_profile(trt: StandinModule) -> None:
    session, engine, _ = open_scripted(trt, ScriptedEngine(**make_ranges(SMALL, LARGE)))
    session.run({"x": ramp(2, 3)})
    session.run({"x": ramp(5, 3)})
    assert engine.active == 1
    assert engine.shapes == {"x": (5, 3)}
    assert engine.addresses.keys() == {"x", "y"}


def test_a_size_between_the_profiles_is_refused_with_all_of_them(trt: StandinModule) -> None:
    session, engine, _ = open_scripted(trt, ScriptedEngine(**make_ranges(SMALL, OTHER)))
    with pytest.raises(FeedError) as info:
        session.run({"x": ramp(4, 3)})
    assert "profile 0 (0): 'x' has 4 on axis 0 (4x3), and it takes 1 to 2" in str(info.value)
    assert "profile 1 (1): 'x' has 4 on axis 0 (4x3), and it takes 6" in str(info.value)
    assert engine.runs == 0


def resize(shapes: Shapes, values: Mapping[str, Array]) -> dict[str, tuple[int, ...]]:
    """Return the shape that the values of ``size`` ask for."""
    return {"y": (shapes["x"][0], int(values["size"].sum()))}


def fill(inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Compute an output of the asked size."""
    count = int(inputs["size"].sum())
    return {"y": np.full((inputs["x"].shape[0], count), count, np.float32)}


def make_resizer() -> ScriptedEngine:
    """Return an engine whose output size is decided by the values of a shape tensor."""
    return ScriptedEngine(
        inputs=(IMAGE, SIZE),
        outputs=(TensorContent("y", shape=(-1, -1)),),
        profiles=({"x": LARGE},),
        values=({"size": ((1, 1), (2, 2), (9, 9))},),
        infer=resize,
        compute=fill,
    )


DESCRIBED = OptimizationProfile(
    "default",
    {"x": ShapeRange(*LARGE), "size": ShapeRange((2,), (2,), (2,))},
    {"size": ValueRange((1, 1), (2, 2), (9, 9))},
)


def test_values_of_a_shape_tensor_are_read_in_host_memory(trt: StandinModule) -> None:
    session, engine, memory = open_scripted(trt, make_resizer(), optimization_profiles=(DESCRIBED,))
    assert session.inputs[1].is_shape_tensor
    for size in ((2, 3), (9, 9), (2, 3), (1, 1)):
        given = {"x": ramp(2, 3), "size": np.array(size, np.int32)}
        assert session.run(given)["y"].shape == (2, sum(size))
    assert engine.addresses["size"] in memory.pinned
    copied = {call[1] for call in memory.done if call[0] == "copy_to_device"}
    assert engine.addresses["size"] not in copied


def test_values_outside_the_range_are_refused(trt: StandinModule) -> None:
    """TensorRT 8.6 does not tell the range; there it comes from the manifest."""
    session, engine, _ = open_scripted(trt, make_resizer(), optimization_profiles=(DESCRIBED,))
    with pytest.raises(FeedError, match="value 1 of 'size' is 10, and it takes 1 to 9"):
        session.run({"x": ramp(1, 3), "size": np.array([9, 10], np.int32)})
    assert engine.runs == 0


def test_without_a_manifest_values_are_checked_where_the_engine_tells_them(
    trt: StandinModule,
) -> None:
    session, engine, _ = open_scripted(trt, make_resizer())
    given = {"x": ramp(1, 3), "size": np.array([9, 10], np.int32)}
    if trt.__version__.startswith("8."):
        assert session.run(given)["y"].shape == (1, 19)
        return
    with pytest.raises(FeedError, match="takes 1 to 9"):
        session.run(given)
    assert engine.runs == 0


def test_values_on_the_gpu_are_refused(trt: StandinModule) -> None:
    class OnGpu:
        __cuda_array_interface__ = {  # noqa: RUF012 a literal, as packages have it
            "shape": (2,), "typestr": "<i4", "data": (4096, False), "version": 3, "stream": None,
        }  # fmt: skip

    session, _, _ = open_scripted(trt, make_resizer(), optimization_profiles=(DESCRIBED,))
    with pytest.raises(FeedError, match="'size' is a shape tensor"):
        session.run({"x": ramp(1, 3), "size": OnGpu()})


def select_positive(inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Compute the positive elements: how many depends on the data."""
    x = inputs["x"]
    return {"y": x[x > 0], "z": x * 3}


def make_selector() -> ScriptedEngine:
    """Return an engine with one output that it sizes itself, and one that it does not."""
    return ScriptedEngine(
        inputs=(IMAGE,),
        outputs=(TensorContent("y", shape=(-1,)), TensorContent("z", shape=(-1, 3))),
        profiles=({"x": LARGE},),
        infer=lambda shapes, _values: {"y": (-1,), "z": shapes["x"]},
        compute=select_positive,
    )


def test_an_output_that_the_data_sizes(trt: StandinModule) -> None:
    session, engine, memory = open_scripted(trt, make_selector())
    with session:
        for batch in (1, 8, 2):
            x = ramp(batch, 3)
            found = session.run({"x": x})
            assert np.array_equal(found["y"], x[x > 0])
            assert np.array_equal(found["z"], x * 3)
        assert session.run({"x": -ramp(2, 3)})["y"].shape == (0,)
        assert set(engine.allocators) == {"y"}
        registered = trt.calls.select("IExecutionContext", "set_output_allocator")
        assert len(registered) == 1
    assert (memory.live, memory.pinned) == ({}, {})


def test_memory_of_such_an_output_only_grows(trt: StandinModule) -> None:
    session, _, memory = open_scripted(trt, make_selector())
    session.run({"x": ramp(8, 3)})
    before = len(memory.done)
    for _ in range(3):
        session.run({"x": ramp(2, 3)})
    assert not {"allocate", "free"} & set(memory.names()[before:])


def test_no_memory_for_such_an_output(trt: StandinModule) -> None:
    memory = FakeDeviceMemory()
    session, _, _ = open_scripted(trt, make_selector(), memory)
    memory.limit_bytes = 0
    with pytest.raises(NotPossibleError, match="no 256 bytes left"):
        session.run({"x": ramp(1, 3)})
    memory.limit_bytes = None
    assert session.run({"x": ramp(1, 3)})["y"].size == 2


def test_a_shape_that_is_never_reported(trt: StandinModule) -> None:
    session, _, _ = open_scripted(trt, make_selector())
    trt.script["IExecutionContext.execute_async_v3"] = True
    with pytest.raises(ExecutionError, match="did not report the shape of 'y'"):
        session.run({"x": ramp(1, 3)})


def test_scalars_and_empty_arrays(trt: StandinModule) -> None:
    engine = ScriptedEngine(
        inputs=(IMAGE, TensorContent("s", shape=())),
        outputs=(TensorContent("y", shape=(-1, 3)), TensorContent("total", shape=())),
        profiles=({"x": ((0, 3), (1, 3), (4, 3))},),
        infer=lambda shapes, _values: {"y": shapes["x"], "total": ()},
        compute=lambda given: {
            "y": given["x"] * given["s"],
            "total": np.asarray(given["x"].sum()),
        },
    )
    session, _, _ = open_scripted(trt, engine)
    found = session.run({"x": ramp(0, 3), "s": np.asarray(2, np.float32)})
    assert found["y"].shape == (0, 3)
    assert (found["total"].shape, float(found["total"])) == ((), 0.0)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"x": ShapeRange((1, 3), (4, 3), (9, 3))}, "has ShapeRange.*max=(8, 3).*says.*max=(9, 3)"),
        ({"x": ShapeRange((2, 3), (4, 3), (8, 3))}, "min=(1, 3).*min=(2, 3)"),
    ],
)
def test_sizes_that_differ_from_the_manifest_are_refused(
    wrong: dict[str, ShapeRange], said: str, trt: StandinModule
) -> None:
    described = OptimizationProfile("default", wrong)
    pattern = said.replace("(", r"\(").replace(")", r"\)")
    with pytest.raises(EngineMismatchError, match=pattern):
        open_scripted(trt, ScriptedEngine(**make_ranges(LARGE)), optimization_profiles=(described,))


def test_another_number_of_profiles_than_the_manifest_is_refused(trt: StandinModule) -> None:
    described = [OptimizationProfile(str(i), {"x": ShapeRange(*LARGE)}) for i in range(2)]
    said = re.escape("has 1 optimization profiles, and the manifest says 2")
    with pytest.raises(EngineMismatchError, match=said):
        open_scripted(
            trt, ScriptedEngine(**make_ranges(LARGE)), optimization_profiles=tuple(described)
        )


def test_layouts_and_types_that_numpy_lacks_are_refused(trt: StandinModule) -> None:
    engine = ScriptedEngine()
    chw = trt.context.member("TensorFormat", "CHW32")
    trt.script["ICudaEngine.get_tensor_format"] = chw
    with pytest.raises(NotPossibleError, match=r"laid out as CHW32.*LINEAR"):
        open_scripted(trt, engine)
    del trt.script["ICudaEngine.get_tensor_format"]
    if "INT4" in trt.context.api["enums"]["DataType"]:
        trt.script["ICudaEngine.get_tensor_dtype"] = trt.context.member("DataType", "INT4")
        with pytest.raises(NotPossibleError, match="is INT4"):
            open_scripted(trt, engine)
