"""Builder settings: what is asked for by name, and what is refused where a version lacks it."""

from pathlib import Path
from typing import Any

import pytest

from trtdeploy.core.errors import CompileError, NotPossibleError

from .api_data import load_api
from .engine_cases import RTX, TENSORRT, find_config, list_set_flags, run_build
from .standin import VERSIONS, StandinModule, make_trt_module

OPTION_FLAGS = {
    "sparse_weights": "SPARSE_WEIGHTS",
    "version_compatible": "VERSION_COMPATIBLE",
    "exclude_lean_runtime": "EXCLUDE_LEAN_RUNTIME",
    "weight_streaming": "WEIGHT_STREAMING",
    "strip_plan": "STRIP_PLAN",
    "refit": "REFIT",
    "gpu_fallback": "GPU_FALLBACK",
    "debug_precision": "DEBUG",
}
LEVELS = {"ampere_plus": "AMPERE_PLUS", "same_compute_capability": "SAME_COMPUTE_CAPABILITY"}


@pytest.fixture(params=VERSIONS)
def trt(request: pytest.FixtureRequest) -> StandinModule:
    """Return the stand-in of each version."""
    return make_trt_module(request.param)


@pytest.fixture(params=TENSORRT)
def tensorrt(request: pytest.FixtureRequest) -> StandinModule:
    """Return the stand-in of each version of TensorRT itself."""
    return make_trt_module(request.param)


@pytest.fixture(params=RTX)
def rtx(request: pytest.FixtureRequest) -> StandinModule:
    """Return the stand-in of TensorRT-RTX."""
    return make_trt_module(request.param)


def has_member(trt: StandinModule, enum: str, member: str) -> bool:
    """Tell whether a version has a member, without a record of the question."""
    return member in trt.context.api["enums"][enum]


@pytest.mark.parametrize(("option", "flag"), OPTION_FLAGS.items())
def test_an_option_sets_its_flag_or_is_refused(
    option: str, flag: str, trt: StandinModule, tmp_path: Path
) -> None:
    if has_member(trt, "BuilderFlag", flag):
        result = run_build(trt, tmp_path, {option: True}).result
        assert result.flags == (flag,)
        (asked,) = trt.calls.select("IBuilderConfig", "set_flag")
        assert asked.args == (getattr(trt.BuilderFlag, flag),)  # STRIP_PLAN has a second name
        return
    with pytest.raises(NotPossibleError, match=f"no builder flag {flag}") as info:
        run_build(trt, tmp_path, {option: True})
    assert trt.__version__ in str(info.value)
    assert info.value.exit_code == 5


def test_which_versions_lack_a_flag() -> None:
    missing = {
        (version, flag)
        for version in VERSIONS
        for flag in OPTION_FLAGS.values()
        if flag not in load_api(version)["enums"]["BuilderFlag"]
    }
    assert missing == {("8.6.1", "WEIGHT_STREAMING"), ("8.6.1", "STRIP_PLAN")}


def test_nothing_is_set_that_was_not_asked_for(trt: StandinModule, tmp_path: Path) -> None:
    run_build(trt, tmp_path)
    assert list_set_flags(trt) == []
    assert trt.calls.members_used("BuilderFlag") == {"TF32"}  # cleared
    assert trt.calls.select("IBuilderConfig", "set_memory_pool_limit") == []
    assigned = {record.member for record in trt.calls.select("IBuilderConfig", kind="set")}
    assert assigned <= {"profiling_verbosity", "progress_monitor"}


def test_workspace_limits_the_pool_of_tensorrt(tensorrt: StandinModule, tmp_path: Path) -> None:
    run_build(tensorrt, tmp_path, {"workspace": 1 << 28})
    pool = tensorrt.MemoryPoolType.WORKSPACE
    assert find_config(tensorrt).get_memory_pool_limit(pool) == 1 << 28


def test_workspace_is_kept_from_rtx(rtx: StandinModule, tmp_path: Path) -> None:
    run_build(rtx, tmp_path, {"workspace": 1 << 20})
    assert rtx.calls.select("IBuilderConfig", "set_memory_pool_limit") == []


@pytest.mark.parametrize(
    ("option", "attribute"),
    [("optimization_level", "builder_optimization_level"), ("aux_streams", "max_aux_streams")],
)
def test_numbers_are_assigned_and_read_back(
    option: str, attribute: str, trt: StandinModule, tmp_path: Path
) -> None:
    run_build(trt, tmp_path, {option: 4})
    assert getattr(find_config(trt), attribute) == 4
    trt.script[f"IBuilderConfig.{attribute}"] = 3  # the setter refuses, and says so in the log
    with pytest.raises(NotPossibleError, match=f"does not take {attribute} = 9: it stays 3"):
        run_build(trt, tmp_path, {option: 9})


def test_debug_precision_asks_for_detail_and_debug(trt: StandinModule, tmp_path: Path) -> None:
    result = run_build(trt, tmp_path, {"debug_precision": True}).result
    assert result.flags == ("DEBUG",)
    assert find_config(trt).profiling_verbosity == trt.ProfilingVerbosity.DETAILED


def test_rtx_is_asked_for_detail_on_request_only(rtx: StandinModule, tmp_path: Path) -> None:
    run_build(rtx, tmp_path)
    assert rtx.calls.select("IBuilderConfig", "profiling_verbosity", "set") == []


@pytest.mark.parametrize(("option", "level"), LEVELS.items())
def test_hardware_compatibility(
    option: str, level: str, tensorrt: StandinModule, tmp_path: Path
) -> None:
    options = {"hardware_compatibility": option}
    if has_member(tensorrt, "HardwareCompatibilityLevel", level):
        run_build(tensorrt, tmp_path, options)
        kept = find_config(tensorrt).hardware_compatibility_level
        assert kept == getattr(tensorrt.HardwareCompatibilityLevel, level)
        return
    with pytest.raises(NotPossibleError, match=f"has no hardware compatibility level {option}"):
        run_build(tensorrt, tmp_path, options)


def test_rtx_drops_hardware_compatibility_silently(rtx: StandinModule, tmp_path: Path) -> None:
    none = rtx.context.member("HardwareCompatibilityLevel", "NONE")
    rtx.script["IBuilderConfig.hardware_compatibility_level"] = none  # as measured
    with pytest.raises(NotPossibleError, match="does not take hardware_compatibility_level"):
        run_build(rtx, tmp_path, {"hardware_compatibility": "ampere_plus"})


def test_dla_core_with_gpu_fallback(tensorrt: StandinModule, tmp_path: Path) -> None:
    tensorrt.script["Builder.num_DLA_cores"] = 2
    flags = run_build(tensorrt, tmp_path, {"dla_core": 1, "gpu_fallback": True}).result.flags
    config = find_config(tensorrt)
    assert flags == ("GPU_FALLBACK",)
    assert config.default_device_type == tensorrt.DeviceType.DLA
    assert config.DLA_core == 1


def test_a_dla_core_that_is_not_there(trt: StandinModule, tmp_path: Path) -> None:
    with pytest.raises(NotPossibleError, match=r"finds 0 DLA cores here.*core 0"):
        run_build(trt, tmp_path, {"dla_core": 0})


def test_rtx_compiles_for_several_compute_capabilities(rtx: StandinModule, tmp_path: Path) -> None:
    run_build(rtx, tmp_path, {"compute_capabilities": ("8.9", "12.0")})
    assert find_config(rtx).num_compute_capabilities == 2
    asked = rtx.calls.select("IBuilderConfig", "set_compute_capability")
    assert [(str(r.args[0]), r.args[1]) for r in asked] == [
        ("ComputeCapability.SM89", 0),
        ("ComputeCapability.SM120", 1),
    ]


@pytest.mark.parametrize(("capability", "name"), [("8.7", "SM87"), ("9.0", "SM90")])
def test_rtx_does_not_know_every_compute_capability(
    capability: str, name: str, rtx: StandinModule, tmp_path: Path
) -> None:
    with pytest.raises(NotPossibleError, match=f"TensorRT-RTX .* cannot compile for {name}"):
        run_build(rtx, tmp_path, {"compute_capabilities": (capability,)})
    rtx.script["IBuilderConfig.set_compute_capability"] = False
    with pytest.raises(NotPossibleError, match="cannot compile for SM89"):
        run_build(rtx, tmp_path, {"compute_capabilities": ("8.9",)})


def test_tensorrt_has_no_named_compute_capabilities(
    tensorrt: StandinModule, tmp_path: Path
) -> None:
    with pytest.raises(NotPossibleError, match="compiles for the GPU it runs on"):
        run_build(tensorrt, tmp_path, {"compute_capabilities": ("8.9",)})


@pytest.mark.parametrize(
    ("options", "allowed"), [({}, False), ({"version_compatible": True}, True)]
)
def test_only_a_version_compatible_plan_may_run_host_code(
    options: dict[str, Any], allowed: bool, tensorrt: StandinModule, tmp_path: Path
) -> None:
    run_build(tensorrt, tmp_path, options)
    asked = tensorrt.calls.select("Runtime", "engine_host_code_allowed", "set")
    assert [record.args for record in asked] == ([(True,)] if allowed else [])


def test_timing_cache_starts_empty_and_is_saved(trt: StandinModule, tmp_path: Path) -> None:
    path = tmp_path / "timing.cache"
    trt.script["ITimingCache.serialize"] = lambda _cache: b"timings"
    run_build(trt, tmp_path, timing_cache_path=str(path))
    assert [r.args for r in trt.calls.select("IBuilderConfig", "create_timing_cache")] == [(b"",)]
    assert path.read_bytes() == b"timings"


def test_timing_cache_is_loaded(trt: StandinModule, tmp_path: Path) -> None:
    path = tmp_path / "timing.cache"
    path.write_bytes(b"earlier")
    run_build(trt, tmp_path, timing_cache_path=str(path))
    (created,) = trt.calls.select("IBuilderConfig", "create_timing_cache")
    (given,) = trt.calls.select("IBuilderConfig", "set_timing_cache")
    assert created.args == (b"earlier",)
    assert given.arguments["ignore_mismatch"] is False


@pytest.mark.parametrize("refused_by", ["create_timing_cache", "set_timing_cache"])
def test_a_timing_cache_of_another_device_is_replaced(
    refused_by: str, trt: StandinModule, tmp_path: Path
) -> None:
    path = tmp_path / "timing.cache"
    path.write_bytes(b"foreign")
    answers = iter([None if refused_by == "create_timing_cache" else False])
    accepted = trt.context.make("ITimingCache") if refused_by == "create_timing_cache" else True
    trt.script[f"IBuilderConfig.{refused_by}"] = lambda *_args, **_kwargs: next(answers, accepted)
    trt.script["IBuilderConfig.get_timing_cache"] = lambda _c: trt.context.make("ITimingCache")
    run_build(trt, tmp_path, timing_cache_path=str(path))
    created = trt.calls.select("IBuilderConfig", "create_timing_cache")
    assert [record.args for record in created] == [(b"foreign",), (b"",)]


def test_a_timing_cache_that_is_not_returned(trt: StandinModule, tmp_path: Path) -> None:
    trt.script["IBuilderConfig.get_timing_cache"] = None
    with pytest.raises(CompileError, match="no timing cache"):
        run_build(trt, tmp_path, timing_cache_path=str(tmp_path / "timing.cache"))


def test_no_timing_cache_is_touched_without_a_path(trt: StandinModule, tmp_path: Path) -> None:
    run_build(trt, tmp_path)
    assert trt.calls.select("IBuilderConfig", "create_timing_cache") == []
