"""Turns requested sizes into optimization profiles over all inputs of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from trtdeploy.config.shape_problem import ShapeProblem
from trtdeploy.config.shape_request import ShapeRequest
from trtdeploy.config.shape_resolver import ShapeResolver
from trtdeploy.core.errors import OptimizationProfileError
from trtdeploy.core.ranges import OptimizationProfile
from trtdeploy.core.tensors import TensorSpec


@dataclass(frozen=True)
class ShapeResolution:
    """Optimization profiles, or what stands in their way.

    Attributes:
        optimization_profiles: One per request; empty when there are problems.
        notes: Every size that was assumed rather than asked for.
        problems: Everything wrong, over all requests.
    """

    optimization_profiles: tuple[OptimizationProfile, ...]
    notes: tuple[str, ...]
    problems: tuple[ShapeProblem, ...]

    def require(self) -> tuple[OptimizationProfile, ...]:
        """Return the optimization profiles.

        Raises:
            OptimizationProfileError: There are problems; its message lists every one.
        """
        if not self.problems:
            return self.optimization_profiles
        lines = [str(problem) for problem in self.problems]
        text = lines[0] if len(lines) == 1 else "\n  ".join([f"{len(lines)} problems:", *lines])
        raise OptimizationProfileError(
            f"the sizes do not fit the model: {text}",
            hint="Sizes come from --shape, --symbol, --value, or 'shapes:' in the profile",
        )


def resolve_shapes(
    inputs: Sequence[TensorSpec], requests: Sequence[ShapeRequest]
) -> ShapeResolution:
    """Resolve requested sizes against the inputs of a model; never raises.

    Args:
        inputs: Every input that must be fed (initializers listed as inputs are not).
        requests: One per optimization profile; none stands for one that assumes everything.

    Returns:
        Profiles that hold ``1 <= min <= opt <= max`` on every dynamic axis and the fixed sizes
        elsewhere, with notes; or the problems.
    """
    resolvers = [ShapeResolver(inputs, request) for request in requests or (ShapeRequest(),)]
    profiles = [resolver.resolve() for resolver in resolvers]
    several = len(resolvers) > 1
    notes: list[str] = []
    problems: list[ShapeProblem] = []
    for resolver in resolvers:
        prefix = f"optimization profile {resolver.name!r}: " if several else ""
        notes += [prefix + note for note in resolver.notes]
        problems += [replace(p, subject=prefix + p.subject) for p in resolver.problems]
    return ShapeResolution(() if problems else tuple(profiles), tuple(notes), tuple(problems))


def resolve_optimization_profiles(
    inputs: Sequence[TensorSpec], requests: Sequence[ShapeRequest]
) -> tuple[OptimizationProfile, ...]:
    """Return the optimization profiles, as ``resolve_shapes`` finds them.

    Raises:
        OptimizationProfileError: Lists every problem: input, axis, given, expected.
    """
    return resolve_shapes(inputs, requests).require()
