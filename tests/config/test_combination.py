"""Combinations of profile, device and backend that cannot work say why."""

from __future__ import annotations

import pytest

from trtdeploy.config.combination import find_combination_problems, find_target_compute_capabilities
from trtdeploy.config.loading import load_deploy_profile
from trtdeploy.core.errors import UsageError


@pytest.mark.parametrize(
    ("name", "overrides", "expected"),
    [
        ("orin-fp16", ["recipe=fp8"], "(compute capability 8.7) has no FP8"),
        ("orin-fp16", ["recipe=fp8"], "use int8 or fp16"),
        ("a100-fp16", ["recipe=fp8"], "it starts at compute capability 8.9"),
        ("cpu-fp32", ["recipe=bf16"], "a CPU target runs fp32 and fp16"),
        ("cpu-fp32", ["recipe=int8"], "has no INT8"),
        ("rtx4090-fp16", ["backend=onnxruntime", "recipe=fp8"], "has no FP8 kernels"),
        ("orin-fp16", ["backend=tensorrt_rtx"], "does not compile for Jetson Orin Nano 8 GB"),
        ("h100-fp16", ["backend=tensorrt_rtx"], "use backend tensorrt"),
        ("thor-fp8", ["backend=tensorrt_rtx"], "(compute capability 11.0)"),
        ("rpi5-fp16", ["backend=tensorrt"], "has no NVIDIA GPU; use backend onnxruntime"),
        ("orin-fp16", ["build.dla_core=0"], "Jetson Orin Nano 8 GB has no DLA"),
        ("thor-fp8", ["recipe=fp16", "build.dla_core=0"], "has no DLA"),
        ("agx-orin-fp16", ["build.dla_core=2"], "has 2 DLA core(s), counted from 0"),
        ("agx-orin-fp16", ["build.dla_core=0", "recipe=bf16"], "a DLA computes in FP16 and INT8"),
        ("orin-fp16", ["build.gpu_fallback=true"], "set build.dla_core or leave it out"),
        ("orin-fp16", ["build.workspace=9GiB"], "9 GiB is above the 6 GiB of memory"),
        ("h100-fp16", ["build.workspace=81GiB"], "81 GiB is above the 80 GiB of memory"),
        ("rpi5-fp16", ["build.workspace=1GiB"], "build.workspace: this is an option of TensorRT"),
        ("rpi5-fp16", ["build.refit=true"], "build.refit: this is an option of TensorRT"),
        ("rpi5-fp16", ["build.dla_core=0"], "only backend tensorrt compiles for a DLA"),
        ("rtx4090-fp16", ["typing=weak"], "only backend tensorrt knows weak typing"),
        ("h100-fp16", ["typing=weak", "build.weight_streaming=true"], "needs a strongly typed"),
        ("h100-fp16", ["build.compute_capabilities=[8.9]"], "only backend tensorrt_rtx"),
        ("rtx4090-fp16", ["build.compute_capabilities=[9.0]"], "does not compile for 9.0"),
        ("rtx4090-fp8", ["build.compute_capabilities=[8.6]"], "8.6 has no FP8"),
        ("rtx4090-bf16", ["build.compute_capabilities=[7.5]"], "7.5 has no BF16"),
        ("rtx4090-fp16", ["build.hardware_compatibility=ampere_plus"], "TensorRT-RTX ignores it"),
        ("rtx4090-fp16", ["build.version_compatible=true"], "the release that built it"),
        ("rtx4090-fp16", ["build.workspace=4GiB"], "has no use for it"),
        ("h100-fp8", ["build.hardware_compatibility=ampere_plus"], "GPUs without FP8"),
        ("h100-fp16", ["build.exclude_lean_runtime=true"], "needs build.version_compatible"),
        ("orin-int8", ["precision.nodes={head: fp8}"], "'head': fp8: Jetson Orin Nano 8 GB"),
        ("orin-fp16", ["precision.nodes={head: int8}"], "recipe fp16 quantizes nothing"),
        ("orin-int8", ["recipe=int8-fp32", "precision.nodes={a: fp16}"], "use recipe int8"),
    ],
)
def test_wrong_combination_says_why(name: str, overrides: list[str], expected: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_deploy_profile(name, overrides)
    assert expected in caught.value.message


def test_all_wrong_combinations_come_at_once() -> None:
    overrides = ["recipe=fp8", "build.dla_core=0", "build.workspace=9GiB", "backend=tensorrt_rtx"]
    with pytest.raises(UsageError) as caught:
        load_deploy_profile("orin-fp16", overrides)
    lines = caught.value.message.splitlines()
    assert len(lines) == 7
    assert all(line.startswith("--set ") and " on orin-fp16.yaml: " in line for line in lines)


@pytest.mark.parametrize(
    ("name", "overrides"),
    [
        ("agx-orin-fp16", ["build.dla_core=1", "build.gpu_fallback=true"]),
        ("agx-orin-fp16", ["build.dla_core=0", "recipe=int8"]),
        ("orin-fp16", ["typing=weak", "build.hardware_compatibility=ampere_plus"]),
        ("orin-fp16", ["build.workspace=6GiB", "recipe=tf32"]),
        ("h100-fp16", ["build.version_compatible=true", "build.exclude_lean_runtime=true"]),
        ("h100-fp16", ["backend=onnxruntime", "build.workspace=null"]),
        ("rtx4090-fp8", ["build.compute_capabilities=[12.0, 12.1]"]),
        ("rtx4090-fp16", ["build.weight_streaming=true", "build.sparse_weights=true"]),
    ],
)
def test_sound_combination_passes(name: str, overrides: list[str]) -> None:
    resolved = load_deploy_profile(name, overrides)
    assert find_combination_problems(resolved.profile, resolved.device) == ()


def test_targets_start_with_the_device() -> None:
    resolved = load_deploy_profile("rtx4090-fp16", ["build.compute_capabilities=[12.0, 8.9]"])
    targets = find_target_compute_capabilities(resolved.profile, resolved.device)
    assert targets == ("8.9", "12.0")
