"""Optimization profiles: from the request to TensorRT's own objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trtdeploy.backends.compiler.network import iterate_inputs
from trtdeploy.core.errors import OptimizationProfileError
from trtdeploy.core.ranges import POINTS, OptimizationProfile, PointRange


def add_optimization_profiles(
    builder: Any, config: Any, network: Any, profiles: Sequence[OptimizationProfile]
) -> None:
    """Add every optimization profile; a static network takes none.

    Raises:
        OptimizationProfileError: An input has no shape, or TensorRT refuses a profile.
    """
    variable = [tensor for tensor in iterate_inputs(network) if _is_variable(tensor)]
    if not variable:
        return
    if not profiles:
        names = ", ".join(repr(tensor.name) for tensor in variable)
        raise OptimizationProfileError(
            f"the shapes of {names} vary, and there is no optimization profile"
        )
    for described in profiles:
        profile = builder.create_optimization_profile()
        for tensor in variable:
            _set_input(profile, tensor, described)
        if config.add_optimization_profile(profile) < 0:
            raise OptimizationProfileError(
                f"TensorRT refuses optimization profile {described.name!r}: {described.shapes}",
                hint="Its log (build.log) says which input; min <= opt <= max must hold.",
            )


def _is_variable(tensor: Any) -> bool:
    return bool(tensor.is_shape_tensor) or -1 in tuple(tensor.shape)


def _set_input(profile: Any, tensor: Any, described: OptimizationProfile) -> None:
    name = tensor.name
    kind = "values" if tensor.is_shape_tensor else "shapes"
    table: Mapping[str, PointRange] = getattr(described, kind)
    if name not in table:
        raise _explain_missing(name, kind, described.name)
    points = [table[name].at(point) for point in POINTS]
    try:
        if tensor.is_shape_tensor:
            profile.set_shape_input(name, *points)
        else:
            profile.set_shape(name, *points)
    except RuntimeError as error:
        raise OptimizationProfileError(
            f"TensorRT refuses the {kind} {table[name]} for input {name!r}, which the "
            f"model declares as {tuple(tensor.shape)}: {error}"
        ) from error


def _explain_missing(name: str, kind: str, profile_name: str) -> OptimizationProfileError:
    if kind == "shapes":
        return OptimizationProfileError(
            f"optimization profile {profile_name!r} has no shape for input {name!r}"
        )
    return OptimizationProfileError(
        f"input {name!r} is a shape tensor: its values, not only its dims, decide shapes inside "
        f"the model, and optimization profile {profile_name!r} gives none",
        hint=f"Add --value '{name}:MIN:OPT:MAX', e.g. --value '{name}:8,8:20,33:64,64'.",
    )
