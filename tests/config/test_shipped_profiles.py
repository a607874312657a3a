"""Every shipped profile and device loads, is sound, and states its sources."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from trtdeploy.config import shipped
from trtdeploy.config.axis_roles import ASSUMED_SIZES, find_default
from trtdeploy.config.combination import find_combination_problems
from trtdeploy.config.loading import (
    list_deploy_profiles,
    list_devices,
    load_deploy_profile,
    load_device,
)
from trtdeploy.core.errors import DeployProfileError

PROMISED = {
    "orin-fp16", "orin-int8", "h100-fp16", "h100-bf16", "h100-fp8", "h100-int8", "rtx4090-fp16",
    "rtx4090-bf16", "rtx4090-fp32", "rtx4090-fp8", "rtx4090-int8", "rtx5090-fp8", "rtx5090-fp16",
    "l4-int8", "l4-fp16", "rpi5-fp16", "cpu-fp32",
}  # fmt: skip


def test_promised_profiles_are_there() -> None:
    assert set(list_deploy_profiles()) >= PROMISED


@pytest.mark.parametrize("name", list_deploy_profiles())
def test_profile_is_sound(name: str) -> None:
    resolved = load_deploy_profile(name)
    profile = resolved.profile
    assert profile.name == name
    assert profile.title
    assert name.endswith(f"-{profile.recipe}")
    assert find_combination_problems(profile, resolved.device) == ()
    for role in ASSUMED_SIZES:
        sizes = find_default(role, profile.shapes.defaults)
        assert 1 <= sizes.min <= sizes.opt <= sizes.max


@pytest.mark.parametrize("name", list_devices())
def test_device_states_its_sources(name: str) -> None:
    device = load_device(name)
    assert device.name == name
    assert device.title
    unsourced = [figure for figure in device.figures if not device.find_source(figure)]
    assert unsourced == []


@pytest.mark.parametrize("name", list_devices())
def test_device_figures_make_sense(name: str) -> None:
    device = load_device(name)
    assert set(device.tflops) <= set(device.precisions)
    assert set(device.tflops_fp32_accumulate) <= set(device.tflops)
    for precision, figure in device.tflops_fp32_accumulate.items():
        assert figure <= device.tflops[precision]
    order = [p for p in ("fp32", "fp16", "int8") if p in device.tflops]
    rates = [device.tflops[precision] for precision in order]
    assert rates == sorted(rates)
    if device.memory is not None:
        assert device.usable_memory_bytes is not None
        assert 0 < device.usable_memory_bytes <= device.memory
    if device.kind == "jetson":
        assert device.shared_memory
        assert device.jetpack


@pytest.mark.parametrize(
    ("name", "precisions", "rtx", "dla_cores"),
    [
        ("orin-nano-8gb", "fp32 tf32 fp16 bf16 int8", False, 0),
        ("agx-orin-64gb", "fp32 tf32 fp16 bf16 int8", False, 2),
        ("orin-nx-8gb", "fp32 tf32 fp16 bf16 int8", False, 1),
        ("thor-t5000", "fp32 tf32 fp16 bf16 int8 fp8 fp4", False, 0),
        ("a100-80gb", "fp32 tf32 fp16 bf16 int8", True, 0),
        ("h100-sxm", "fp32 tf32 fp16 bf16 int8 fp8", False, 0),
        ("rtx4090", "fp32 tf32 fp16 bf16 int8 fp8", True, 0),
        ("rtx5090", "fp32 tf32 fp16 bf16 int8 fp8 fp4", True, 0),
        ("raspberry-pi-5", "fp32 fp16", False, 0),
    ],
)
def test_device_capabilities(name: str, precisions: str, rtx: bool, dla_cores: int) -> None:
    device = load_device(name)
    assert " ".join(device.precisions) == precisions
    assert device.tensorrt_rtx is rtx
    assert device.dla_cores == dla_cores


def test_super_mode_needs_a_newer_jetpack() -> None:
    assert "6.0" in load_device("orin-nano-8gb").jetpack
    assert "6.0" not in load_device("orin-nano-8gb-super").jetpack


def test_installed_wheel_carries_the_profiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "profiles_data"
    (data / "devices").mkdir(parents=True)
    (data / "only-one.yaml").write_text("title: x\n")
    monkeypatch.setattr(shipped, "_CANDIDATES", (data, tmp_path / "absent"))
    assert list_deploy_profiles() == ("only-one",)
    monkeypatch.setattr(shipped, "_CANDIDATES", (tmp_path / "absent",))
    with pytest.raises(DeployProfileError, match="missing from this installation"):
        list_deploy_profiles()


def test_config_imports_no_numpy_and_no_sdk() -> None:
    code = (
        "import sys, trtdeploy.config.loading, trtdeploy.config.optimization_profile; "
        "import trtdeploy.config.shape_syntax; "
        "print([m for m in ('numpy', 'onnx', 'onnxruntime', 'tensorrt', 'tensorrt_rtx', 'torch') "
        "if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
