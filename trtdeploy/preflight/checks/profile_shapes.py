"""FindProfileShapesCheck: sizes of an optimization profile with which the model cannot run."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

from trtdeploy.core.ranges import POINTS, OptimizationProfile
from trtdeploy.preflight.context import CheckContext
from trtdeploy.preflight.finding import Affects, Finding, FindingKind, Severity
from trtdeploy.preflight.inference import InferredShapes, Sizes
from trtdeploy.preflight.prepared_model import CheckedNode
from trtdeploy.preflight.shape_conflict import describe_inputs, describe_origin
from trtdeploy.preflight.text import format_dims

SHAPES_CANNOT_RUN = FindingKind("shapes-cannot-run", Severity.BLOCKER, Affects.BOTH)

_WINDOWED = frozenset({"Conv", "MaxPool", "AveragePool", "LpPool"})
_REMEDY = "Change the sizes in the optimization profile so that they fit together."


class FindProfileShapesCheck:
    """Put the sizes of every profile at min, opt and max into the model and infer shapes.

    TensorRT checks opt only and warns about the rest; the baseline would fail at run time. ONNX
    does not compare element counts around a Reshape, nor refuse a kernel larger than its image,
    so this check does.
    """

    def find(self, context: CheckContext) -> Iterator[Finding]:
        """Yield one finding per profile, node and reason; min, opt and max are named together."""
        for profile in context.optimization_profiles:
            reasons: dict[tuple[str, str], list[str]] = defaultdict(list)
            for point, sizes in _distinct_points(profile).items():
                inferred = context.structure.infer(sizes)
                for key, reason in _find_reasons(context, inferred):
                    reasons[key, reason].append(point)
            for (key, reason), points in _merge_points(reasons).items():
                yield SHAPES_CANNOT_RUN.at(
                    context.place_of_key(key),
                    f"optimization profile {profile.name!r} at {' and '.join(points)}: {reason}",
                    _REMEDY,
                )


def _distinct_points(profile: OptimizationProfile) -> dict[str, Sizes]:
    """Return the sizes by point; a point equal to an earlier one is left out."""
    points: dict[str, Sizes] = {}
    for point in POINTS:
        sizes = Sizes.at_point(profile, point)
        if sizes not in points.values():
            points[point] = sizes
    return points


def _find_reasons(context: CheckContext, inferred: InferredShapes) -> Iterator[tuple[str, str]]:
    """Yield (key of a node, what does not fit)."""
    for key, error in inferred.errors.items():
        if key in context.symbolic.errors:
            continue  # wrong for every size: FindShapeConflictsCheck says so
        origin = describe_origin(context, key, inferred)
        inputs = describe_inputs(context, key, inferred)
        yield key, f"{inputs} do not fit together ({error}); the sizes come from {origin}"
    for checked in context.standard_nodes():
        reason = _compare_sizes(checked, inferred)
        if reason:
            yield checked.node.name, reason


def _compare_sizes(checked: CheckedNode, inferred: InferredShapes) -> str:
    node = checked.node
    if node.op_type != "Reshape" and node.op_type not in _WINDOWED:
        return ""
    before = inferred.known_shape_of(node.input[0])
    after = inferred.known_shape_of(node.output[0])
    if before is None or after is None:
        return ""
    if node.op_type == "Reshape" and math.prod(before) != math.prod(after):
        return f"{format_dims(before)} cannot be reshaped to {format_dims(after)}"
    if node.op_type in _WINDOWED and min(before, default=1) > 0 and min(after, default=1) < 1:
        return f"an input of {format_dims(before)} is smaller than the kernel"
    return ""


def _merge_points(
    reasons: dict[tuple[str, str], list[str]],
) -> dict[tuple[str, str], list[str]]:
    """Keep the first reason of each node: sizes differ between points, the cause does not."""
    merged: dict[str, tuple[str, list[str]]] = {}
    for (key, reason), points in reasons.items():
        merged.setdefault(key, (reason, []))[1].extend(points)
    return {(key, reason): points for key, (reason, points) in merged.items()}
