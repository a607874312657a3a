"""Checks of a deploy profile against its device: what cannot work, and why."""

from __future__ import annotations

from collections.abc import Iterator

from trtdeploy.config.compute_capability import (
    TENSORRT_RTX_TARGETS,
    Precision,
    find_first_compute_capability,
    find_precisions,
    is_tensorrt_rtx_target,
)
from trtdeploy.config.deploy_profile import BuildSection, DeployProfile
from trtdeploy.config.device import DeviceSpec
from trtdeploy.config.recipe import RECIPES
from trtdeploy.core.dtypes import DType
from trtdeploy.core.units import format_bytes

_ONNXRUNTIME_PRECISIONS = frozenset({"fp32", "fp16", "int8"})
_DLA_PRECISIONS = frozenset({"fp16", "int8"})
_NODE_PRECISIONS: dict[str, Precision] = {"int8": "int8", "fp8": "fp8", "fp8-e5m2": "fp8"}
_ANY_BACKEND_OPTIONS = frozenset({"timeout_s"})


def find_combination_problems(profile: DeployProfile, device: DeviceSpec) -> tuple[str, ...]:
    """Return everything about a profile that its device or backend cannot do.

    Each line starts with the key to change; an empty tuple means a sound combination.
    """
    checks = (
        _check_recipe, _check_nodes, _check_backend, _check_typing, _check_onnxruntime, _check_dla,
        _check_memory, _check_targets, _check_compatibility, _check_tensorrt_rtx_options,
    )  # fmt: skip
    return tuple(problem for check in checks for problem in check(profile, device))


def find_target_compute_capabilities(profile: DeployProfile, device: DeviceSpec) -> tuple[str, ...]:
    """Return the compute capabilities an engine is compiled for, the device's own first."""
    own = (device.compute_capability,) if device.compute_capability else ()
    return tuple(dict.fromkeys((*own, *profile.build.compute_capabilities)))


def _name_device(device: DeviceSpec) -> str:
    if device.compute_capability is None:
        return device.title
    return f"{device.title} (compute capability {device.compute_capability})"


def _suggest_recipes(device: DeviceSpec) -> str:
    usable = [
        recipe
        for recipe in reversed(RECIPES.values())
        if all(need in device.precisions for need in recipe.needs)
    ]
    # FP16 costs the least accuracy per gain, alone or beside 8-bit layers
    named = [recipe for recipe in usable if recipe.low is DType.FLOAT16] or usable
    return " or ".join(recipe.name for recipe in named[:2])


def _explain_precision(precision: Precision, device: DeviceSpec) -> str:
    if device.compute_capability is None:
        return "a CPU target runs " + " and ".join(device.precisions)
    return f"it starts at compute capability {find_first_compute_capability(precision)}"


def _check_recipe(profile: DeployProfile, device: DeviceSpec) -> Iterator[str]:
    for precision in RECIPES[profile.recipe].needs:
        if precision not in device.precisions:
            yield (
                f"recipe: {profile.recipe}: {_name_device(device)} has no {precision.upper()}; "
                f"{_explain_precision(precision, device)}; use {_suggest_recipes(device)}"
            )


def _check_nodes(profile: DeployProfile, device: DeviceSpec) -> Iterator[str]:
    recipe = RECIPES[profile.recipe]
    for pattern, kind in profile.precision.nodes.items():
        place = f"precision.nodes: {pattern!r}: {kind}"
        if kind == "fp32":
            continue
        if recipe.quantized is None:
            yield f"{place}: recipe {recipe.name} quantizes nothing; use recipe int8 or fp8"
        elif kind == "fp16" and recipe.low is None:
            yield (
                f"{place}: recipe {recipe.name} leaves what is not quantized FP32; use recipe int8"
            )
        elif kind != "fp16" and (need := _NODE_PRECISIONS[kind]) not in device.precisions:
            yield (
                f"{place}: {_name_device(device)} has no {need.upper()}; "
                f"{_explain_precision(need, device)}"
            )


def _check_backend(profile: DeployProfile, device: DeviceSpec) -> Iterator[str]:
    if profile.backend == "onnxruntime":
        return
    if device.kind == "cpu":
        yield (
            f"backend: {profile.backend}: {device.title} has no NVIDIA GPU; use backend onnxruntime"
        )
    elif profile.backend == "tensorrt_rtx" and not device.tensorrt_rtx:
        yield (
            f"backend: tensorrt_rtx: TensorRT-RTX does not compile for {_name_device(device)}, "
            f"only for {', '.join(TENSORRT_RTX_TARGETS)}; use backend tensorrt"
        )


def _check_typing(profile: DeployProfile, _device: DeviceSpec) -> Iterator[str]:
    if profile.typing != "weak":
        return
    if profile.backend != "tensorrt":
        yield f"typing: weak: only backend tensorrt knows weak typing, not {profile.backend}"
    elif profile.build.weight_streaming:
        yield "typing: weak: weight_streaming needs a strongly typed network; use typing strong"


def _check_onnxruntime(profile: DeployProfile, _device: DeviceSpec) -> Iterator[str]:
    if profile.backend != "onnxruntime":
        return
    for need in RECIPES[profile.recipe].needs:
        if need not in _ONNXRUNTIME_PRECISIONS:
            yield (
                f"recipe: {profile.recipe}: ONNX Runtime on a CPU has no {need.upper()} "
                "kernels; use fp32, fp16 or int8"
            )
    plain = BuildSection()
    for name in BuildSection.model_fields:
        if name in _ANY_BACKEND_OPTIONS or name == "dla_core":
            continue
        if getattr(profile.build, name) != getattr(plain, name):
            yield f"build.{name}: this is an option of TensorRT; backend onnxruntime has none such"


def _check_dla(profile: DeployProfile, device: DeviceSpec) -> Iterator[str]:
    core = profile.build.dla_core
    if core is None:
        if profile.build.gpu_fallback:
            yield "build.gpu_fallback: it belongs to a DLA; set build.dla_core or leave it out"
        return
    if device.dla_cores == 0:
        yield f"build.dla_core: {device.title} has no DLA; leave it out to compile for the GPU"
    elif core >= device.dla_cores:
        yield (
            f"build.dla_core: {core}: {device.title} has {device.dla_cores} DLA "
            f"core(s), counted from 0"
        )
    if profile.backend != "tensorrt":
        yield f"build.dla_core: only backend tensorrt compiles for a DLA, not {profile.backend}"
    if not _DLA_PRECISIONS.issuperset(RECIPES[profile.recipe].needs):
        yield f"recipe: {profile.recipe}: a DLA computes in FP16 and INT8 only; use fp16 or int8"


def _check_memory(profile: DeployProfile, device: DeviceSpec) -> Iterator[str]:
    workspace, memory = profile.build.workspace, device.usable_memory_bytes
    if workspace is None or memory is None or workspace <= memory:
        return
    reserved = device.reserved_memory
    kept = f" after the {format_bytes(reserved)} that the system keeps" if reserved else ""
    yield (
        f"build.workspace: {format_bytes(workspace)} is above the {format_bytes(memory)} "
        f"of memory that {device.title} has{kept}"
    )


def _check_targets(profile: DeployProfile, _device: DeviceSpec) -> Iterator[str]:
    extra = profile.build.compute_capabilities
    if not extra or profile.backend == "onnxruntime":
        return
    if profile.backend != "tensorrt_rtx":
        yield (
            "build.compute_capabilities: only backend tensorrt_rtx compiles one engine for several "
            "GPUs; see build.hardware_compatibility"
        )
        return
    needs = RECIPES[profile.recipe].needs
    for target in extra:
        if not is_tensorrt_rtx_target(target):
            yield (
                f"build.compute_capabilities: TensorRT-RTX does not compile for {target}, "
                f"only for {', '.join(TENSORRT_RTX_TARGETS)}"
            )
        elif lacking := [need for need in needs if need not in find_precisions(target)]:
            yield (
                f"build.compute_capabilities: {target} has no {lacking[0].upper()}, "
                f"which recipe {profile.recipe} needs"
            )


def _check_compatibility(profile: DeployProfile, device: DeviceSpec) -> Iterator[str]:
    build = profile.build
    if build.exclude_lean_runtime and not build.version_compatible:
        yield "build.exclude_lean_runtime: it needs build.version_compatible: true"
    if build.hardware_compatibility != "ampere_plus" or profile.backend != "tensorrt":
        return
    if "fp8" in RECIPES[profile.recipe].needs:
        yield "build.hardware_compatibility: ampere_plus includes GPUs without FP8; use none"
    if "tf32" not in device.precisions:
        yield f"build.hardware_compatibility: {_name_device(device)} is older than Ampere; use none"


def _check_tensorrt_rtx_options(profile: DeployProfile, _device: DeviceSpec) -> Iterator[str]:
    if profile.backend != "tensorrt_rtx":
        return
    if profile.build.workspace is not None:
        yield (
            "build.workspace: TensorRT-RTX has no use for it, and fails under a small one; "
            "remove it"
        )
    if profile.build.hardware_compatibility != "none":
        yield (
            "build.hardware_compatibility: TensorRT-RTX ignores it; "
            "list more GPUs in build.compute_capabilities"
        )
    if profile.build.version_compatible:
        yield (
            "build.version_compatible: a TensorRT-RTX engine runs on the release that built it "
            "and on no other"
        )
