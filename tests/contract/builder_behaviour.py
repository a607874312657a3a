"""The state that a builder, its config and its optimization profiles keep between calls."""

from collections.abc import Mapping
from typing import Any

from .standin_context import Behaviour, StandinContext
from .standin_enum import StandinEnum


def build_builder_behaviours(context: StandinContext) -> dict[str, Behaviour]:
    """Return the answers of Builder, IBuilderConfig, IOptimizationProfile and IHostMemory."""

    def create_network(builder: Any, flags: int = 0) -> object:
        if context.label.startswith("TensorRT-RTX"):  # its networks say so whatever was asked
            strong: StandinEnum = context.member("NetworkDefinitionCreationFlag", "STRONGLY_TYPED")
            flags = int(flags) | 1 << strong.number
        return context.make("INetworkDefinition", creator=builder, creation_flags=int(flags))

    def tf32_only(_owner: Any) -> int:
        tf32: StandinEnum = context.member("BuilderFlag", "TF32")
        return 1 << tf32.number

    return {
        "Builder.create_network": create_network,
        "Builder.max_threads": lambda _builder: 1,
        # A test that needs a platform without them scripts them.
        "Builder.platform_has_fast_fp16": lambda _builder: True,
        "Builder.platform_has_fast_int8": lambda _builder: True,
        "Builder.platform_has_tf32": lambda _builder: True,
        "IHostMemory.nbytes": bytes.__len__,
        "IBuilderConfig.builder_optimization_level": lambda _config: 3,
        **_flag_behaviours("IBuilderConfig", tf32_only),
        **_flag_behaviours("OnnxParser", lambda _parser: 0),
        "IBuilderConfig.add_optimization_profile": _add_optimization_profile,
        "IBuilderConfig.num_optimization_profiles": lambda config: len(
            config._state.get("optimization_profiles", ())
        ),
        "IBuilderConfig.set_memory_pool_limit": lambda config, pool, size: config._state.update(
            {f"pool {pool.name}": size}
        ),
        "IBuilderConfig.get_memory_pool_limit": lambda config, pool: config._state.get(
            f"pool {pool.name}", 0
        ),
        "IBuilderConfig.set_timing_cache": _set_timing_cache,
        "IBuilderConfig.get_timing_cache": lambda config: config._state.get("timing_cache"),
        **_shape_behaviours("shape"),
        **_shape_behaviours("shape_input"),
    }


def _flag_behaviours(class_name: str, initial: Behaviour) -> Mapping[str, Behaviour]:
    """Return ``flags`` and the three methods that work on its bits."""

    def bits(owner: Any) -> Any:
        return owner._state.get("flags", initial(owner))

    def set_flag(owner: Any, flag: Any) -> None:
        owner._state["flags"] = bits(owner) | 1 << flag.number

    def clear_flag(owner: Any, flag: Any) -> None:
        owner._state["flags"] = bits(owner) & ~(1 << flag.number)

    return {
        f"{class_name}.flags": initial,
        f"{class_name}.set_flag": set_flag,
        f"{class_name}.clear_flag": clear_flag,
        f"{class_name}.get_flag": lambda owner, flag: bool(bits(owner) >> flag.number & 1),
    }


def _shape_behaviours(member: str) -> Mapping[str, Behaviour]:
    """Return the setter and the getter of the ranges of an optimization profile."""

    def set_range(owner: Any, name: str, *shapes: Any) -> None:
        owner._state.setdefault(member, {})[name] = [tuple(shape) for shape in shapes]

    def get_range(owner: Any, name: str) -> object:
        found = owner._state.get(member, {}).get(name, [])
        return found if member == "shape" else [list(values) for values in found]

    return {
        f"IOptimizationProfile.set_{member}": set_range,
        f"IOptimizationProfile.get_{member}": get_range,
    }


def _add_optimization_profile(config: Any, profile: Any) -> int:
    added = config._state.setdefault("optimization_profiles", [])
    added.append(profile)
    return len(added) - 1


def _set_timing_cache(config: Any, cache: Any, _ignore_mismatch: bool) -> bool:
    config._state["timing_cache"] = cache
    return True
