"""Which GPU a deploy profile is for: the model, where TensorRT ties engines to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from trtdeploy.backends.cuda.local_gpu import LocalGpu
from trtdeploy.building import compiling, parity_step, target
from trtdeploy.building.parity_step import is_device_here
from trtdeploy.building.target import (
    explain_other_gpu,
    find_shipped_device,
    is_same_model,
    judge_ability,
    parse_gpu_model,
)
from trtdeploy.config.loading import list_devices, load_deploy_profile, load_device
from trtdeploy.core.errors import MissingDependencyError

NAMES = {
    "NVIDIA GeForce RTX 4090": {"rtx4090"},
    "NVIDIA GeForce RTX 4080": set(),
    "NVIDIA L4": {"l4"},
    "NVIDIA L40S": {"l40s"},
    "NVIDIA H100 80GB HBM3": {"h100-sxm", "h100-pcie"},
    "NVIDIA H100 PCIe": {"h100-pcie"},
    "NVIDIA H100 NVL": {"h100-nvl"},
    "NVIDIA H200": {"h200-sxm"},
    "NVIDIA A100-SXM4-80GB": {"a100-80gb"},
    "NVIDIA A100-PCIE-40GB": {"a100-40gb"},
    "Jetson AGX Orin": {"agx-orin-32gb", "agx-orin-64gb"},
    "Jetson Orin Nano 8 GB": {"orin-nano-8gb", "orin-nano-8gb-super"},
    "Jetson Orin NX 16 GB": {"orin-nx-16gb", "orin-nx-16gb-super"},
    "Jetson Thor T5000": {"thor-t5000"},
}


@pytest.mark.parametrize(("name", "devices"), NAMES.items(), ids=NAMES)
def test_names_of_drivers_and_titles_of_devices(name: str, devices: set[str]) -> None:
    gpu = LocalGpu(name, "0.0")
    found = {device for device in list_devices() if is_same_model(load_device(device), gpu)}
    assert found == devices


def test_a_name_that_says_less_contradicts_nothing() -> None:
    orin = parse_gpu_model("Jetson Orin")  # a module whose part number is not known
    assert not orin.contradicts(parse_gpu_model("Jetson Orin Nano 8 GB"))
    assert not parse_gpu_model("NVIDIA GeForce RTX 4090 Laptop GPU").contradicts(
        parse_gpu_model("NVIDIA GeForce RTX 4090 24 GB")
    )


NANO, AGX = LocalGpu("Jetson Orin Nano 8 GB", "8.7"), LocalGpu("Jetson AGX Orin 64 GB", "8.7")
L4, L40S, ADA = (LocalGpu(name, "8.9") for name in ("NVIDIA L4", "NVIDIA L40S", "RTX 4090"))
PORTABLE = "build.hardware_compatibility=same_compute_capability"
CASES: dict[str, tuple[str, tuple[str, ...], LocalGpu | None, str]] = {
    "the device": ("orin-fp16", (), NANO, ""),
    "no GPU": ("orin-fp16", (), None, "Jetson Orin Nano 8 GB (compute capability 8.7) is not in"),
    "another capability": ("orin-fp16", (), L4, "this machine has NVIDIA L4 (compute capability"),
    "another Orin": ("orin-fp16", (), AGX, "AGX Orin 64 GB, which has the same compute capability"),
    "asked for": ("orin-fp16", ("device=agx-orin-64gb",), AGX, ""),
    "portable": ("orin-fp16", (PORTABLE,), AGX, ""),
    "another Ada": ("l4-fp16", (), L40S, "NVIDIA L40S, which has the same compute capability"),
    "RTX on another Ada": ("rtx4090-fp16", (), L40S, ""),
    "RTX on Orin": ("rtx4090-fp16", (), NANO, "this machine has Jetson Orin Nano"),
    "RTX for several": ("rtx4090-fp16", ("build.compute_capabilities=[12.0]",),
                        LocalGpu("NVIDIA GeForce RTX 5090", "12.0"), ""),
}  # fmt: skip


@pytest.mark.parametrize(("profile", "overrides", "gpu", "said"), CASES.values(), ids=CASES)
def test_building_and_measuring_agree(
    profile: str,
    overrides: tuple[str, ...],
    gpu: LocalGpu | None,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolved = load_deploy_profile(profile, overrides)
    reason = explain_other_gpu(resolved, gpu)
    assert said in reason
    assert bool(reason) == bool(said)
    monkeypatch.setattr(parity_step, "find_local_gpu", lambda: gpu)
    monkeypatch.setattr(parity_step, "is_installed", lambda _module: True)
    assert is_device_here(resolved, "engine") == (not said)
    if resolved.profile.backend == "tensorrt":
        monkeypatch.setattr(target, "is_installed", lambda _module: True)
        ability = judge_ability(resolved, Path("net.x"), find_gpu=lambda: gpu)
        assert ability.possible == (not said)
        assert said in ability.reason


def test_a_near_miss_is_told_how_to_build_for_itself() -> None:
    orin = judge_ability(load_deploy_profile("orin-fp16"), Path("net.x"), find_gpu=lambda: AGX)
    assert "run there: trtdeploy build net.x" in orin.next_step
    assert "--set device=agx-orin-64gb" in orin.next_step
    a10 = LocalGpu("NVIDIA RTX 6000 Ada Generation", "8.9")
    other = judge_ability(load_deploy_profile("l4-fp16"), Path("net.x"), find_gpu=lambda: a10)
    assert "a device file of your own" in other.next_step
    assert find_shipped_device(a10) is None


def test_a_device_of_the_users_own_is_known_by_its_capability(tmp_path: Path) -> None:
    path = tmp_path / "lab.yaml"
    path.write_text('title: The box in room 3\nkind: geforce\ncompute_capability: "8.9"\n')
    assert is_same_model(load_device(path), ADA)


def test_a_missing_package_is_named_as_the_vendor_calls_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "is_installed", lambda _module: False)
    for profile, gpu, command in (
        ("rtx4090-fp16", None, "pip install tensorrt-rtx   ("),
        ("l4-fp16", L4, "pip install tensorrt   ("),
    ):
        resolved = load_deploy_profile(profile)
        with pytest.raises(MissingDependencyError) as info:
            judge_ability(resolved, Path("net.x"), find_gpu=lambda gpu=gpu: gpu)
        assert command in info.value.hint


def test_timings_are_kept_for_the_gpu_that_was_timed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRTDEPLOY_CACHE", str(tmp_path))
    resolved = load_deploy_profile("orin-fp16", (PORTABLE,))
    names = set()
    for gpu in (NANO, AGX):
        monkeypatch.setattr(compiling, "find_local_gpu", lambda gpu=gpu: gpu)
        path = compiling._find_shared_cache(resolved)
        assert path is not None
        names.add(path.name.partition("-8.7")[0])
    assert names == {"jetson-orin-nano-8-gb", "jetson-agx-orin-64-gb"}
