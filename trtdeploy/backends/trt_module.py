"""Questions to a TensorRT module about itself: the one place that knows how versions differ.

Every function asks the module what it has. Version numbers are never compared, and members are
looked up only when they are about to be used, because their integer values move between majors.
Sources: trt_api_by_version.json under tests/contract, read from the wheels.
"""

from __future__ import annotations

from typing import Any

from trtdeploy.backends.installed import INSTALL
from trtdeploy.core.errors import NotPossibleError
from trtdeploy.core.optional import import_optional


def import_trt(module: str, activity: str) -> Any:
    """Import ``tensorrt`` or ``tensorrt_rtx``.

    Args:
        module: Module name.
        activity: What it is needed for, e.g. ``"compiling"``.

    Raises:
        MissingDependencyError: It is not installed, or its libraries are not.
    """
    product = "TensorRT" if module == "tensorrt" else "TensorRT-RTX"
    install = INSTALL[module]
    if module == "tensorrt":
        install += "   (on Jetson it comes with JetPack)"
    return import_optional(module, needed_for=f"{activity} with {product}", install=install)


def is_rtx(trt: Any) -> bool:
    """True for TensorRT-RTX, which compiles for named compute capabilities."""
    return hasattr(trt, "ComputeCapability")


def name_product(trt: Any) -> str:
    """Return e.g. ``TensorRT 8.6.1`` or ``TensorRT-RTX 1.7.1.116``."""
    return f"{'TensorRT-RTX' if is_rtx(trt) else 'TensorRT'} {trt.__version__}"


def resolve_typing(trt: Any, wanted: str) -> str:
    """Return ``weak`` or ``strong`` for what a profile asks (``auto``, ``weak``, ``strong``).

    Raises:
        NotPossibleError: This TensorRT has no such typing.
    """
    creation = trt.NetworkDefinitionCreationFlag
    has_strong = hasattr(creation, "STRONGLY_TYPED")
    if wanted == "auto":
        return "strong" if has_strong else "weak"
    if wanted == "strong" and not has_strong:
        raise NotPossibleError(
            f"{name_product(trt)} has no strongly typed networks",
            hint="Remove 'typing: strong' from the profile, or use TensorRT 10 or newer.",
        )
    if wanted == "weak" and not hasattr(creation, "EXPLICIT_BATCH"):
        raise NotPossibleError(
            f"{name_product(trt)} is strongly typed only",
            hint="Remove 'typing: weak' from the profile.",
        )
    return wanted


def find_network_flags(trt: Any, typing: str) -> int:
    """Return the bit mask for ``Builder.create_network``.

    8.x needs EXPLICIT_BATCH; 10.x STRONGLY_TYPED, or 0 for weak; 11.x is always strong and
    takes 0; TensorRT-RTX takes STRONGLY_TYPED.
    """
    creation = trt.NetworkDefinitionCreationFlag
    if typing == "weak":
        return 0 if hasattr(creation, "STRONGLY_TYPED") else 1 << int(creation.EXPLICIT_BATCH)
    if is_rtx(trt) or hasattr(creation, "EXPLICIT_BATCH"):
        return 1 << int(creation.STRONGLY_TYPED)
    return 0


def set_flag(trt: Any, config: Any, name: str) -> None:
    """Set a builder flag by name.

    Raises:
        NotPossibleError: This TensorRT has no such flag; building without it would produce
            something else than what was asked for.
    """
    flag = getattr(trt.BuilderFlag, name, None)
    if flag is None:
        raise NotPossibleError(
            f"{name_product(trt)} has no builder flag {name}",
            hint="Change the profile, or build with a TensorRT that has it.",
        )
    config.set_flag(flag)


def assign(trt: Any, config: Any, attribute: str, value: object) -> None:
    """Set a property of the builder config and read it back.

    TensorRT's setters return nothing: what they refuse, they log, or clamp, or drop.

    Raises:
        NotPossibleError: The property does not have the value afterwards.
    """
    setattr(config, attribute, value)
    kept = getattr(config, attribute)
    if kept != value:
        raise NotPossibleError(
            f"{name_product(trt)} does not take {attribute} = {value}: it stays {kept}",
            hint="Change the profile's build section, or build with a TensorRT that takes it.",
        )
