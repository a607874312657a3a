"""FindProfileInputsCheck: optimization profiles that do not describe this model's inputs."""

from __future__ import annotations

from collections.abc import Iterator

from trtdeploy.core.dtypes import SHAPE_VALUE_TYPES
from trtdeploy.core.names import suggest_name
from trtdeploy.core.ranges import POINTS, OptimizationProfile, ShapeRange
from trtdeploy.core.tensors import TensorSpec, format_shape
from trtdeploy.graph.onnx_defects import LARGEST_SIZE
from trtdeploy.graph.shape_values import find_shape_tensor_inputs
from trtdeploy.preflight.context import CheckContext
from trtdeploy.preflight.finding import (
    WHOLE_GRAPH,
    Affects,
    Finding,
    FindingKind,
    Severity,
)
from trtdeploy.preflight.symbols import find_symbol_axes

PROFILE_MISMATCH = FindingKind("profile-mismatch", Severity.BLOCKER, Affects.ENGINE)

_REMEDY = "Correct the shapes of the optimization profile."


class FindProfileInputsCheck:
    """Compare every optimization profile with the inputs of the model.

    Profiles made from a deploy profile are right by construction; those a caller builds need not.
    """

    def find(self, context: CheckContext) -> Iterator[Finding]:
        """Yield one finding per profile, input and mistake."""
        for profile in context.optimization_profiles:
            for message in _find_mistakes(context, profile):
                yield PROFILE_MISMATCH.at(
                    WHOLE_GRAPH, f"optimization profile {profile.name!r}: {message}", _REMEDY
                )


def _find_mistakes(context: CheckContext, profile: OptimizationProfile) -> Iterator[str]:
    specs = {spec.name: spec for spec in context.prepared.model.input_specs()}
    for name in profile.shapes:
        if name not in specs:
            yield f"the model has no input {name!r}. {suggest_name(name, specs)}"
    for name, spec in specs.items():
        shapes = profile.shapes.get(name)
        if shapes is not None:
            yield from _compare_with_spec(spec, shapes)
        elif spec.is_dynamic:
            yield f"the input {name!r} ({format_shape(spec.shape)}) is missing"
    yield from _compare_symbols(specs, profile)
    if context.target.uses_tensorrt:
        wanted = find_shape_tensor_inputs(context.prepared.index)
        for name in sorted(wanted - profile.values.keys()):
            if specs[name].dtype in SHAPE_VALUE_TYPES:
                yield f"the input {name!r} is a shape tensor and has no value range"


def _compare_with_spec(spec: TensorSpec, shapes: ShapeRange) -> Iterator[str]:
    ranks = {len(shapes.at(point)) for point in POINTS}
    if spec.rank is not None and ranks != {spec.rank}:
        yield (
            f"{spec.name!r} has {spec.rank} axes ({format_shape(spec.shape)}), the profile gives "
            f"{' or '.join(map(str, sorted(ranks)))}"
        )
        return
    for axis, (low, usual, high) in enumerate(zip(*map(shapes.at, POINTS), strict=False)):
        declared = spec.shape[axis] if spec.shape is not None else ""
        where = f"{spec.name!r} axis {axis}"
        if isinstance(declared, int) and {low, usual, high} != {declared}:
            yield f"{where} is {declared} in the model, the profile gives {low}, {usual}, {high}"
        elif not 0 <= low <= usual <= high:
            yield f"{where}: min {low}, opt {usual}, max {high} are not in order"
        elif high > LARGEST_SIZE:
            yield f"{where}: {high} is larger than any engine accepts"


def _compare_symbols(specs: dict[str, TensorSpec], profile: OptimizationProfile) -> Iterator[str]:
    for symbol, places in find_symbol_axes(specs.values()).items():
        given: dict[tuple[int, ...], str] = {}
        for name, axis in places:
            shapes = profile.shapes.get(name)
            if shapes is not None and _has_rank(shapes, specs[name].rank):
                sizes = tuple(shapes.at(point)[axis] for point in POINTS)
                given.setdefault(sizes, f"{list(sizes)} for {name!r} axis {axis}")
        if len(given) > 1:
            yield f"the symbol {symbol!r} has different sizes: {', '.join(given.values())}"


def _has_rank(shapes: ShapeRange, rank: int | None) -> bool:
    return all(len(shapes.at(point)) == rank for point in POINTS)
