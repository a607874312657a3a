"""Contents of shape tensors: inputs whose values decide shapes inside the model."""

from __future__ import annotations

import math
from collections.abc import Mapping

from trtdeploy.config.shape_problem import ShapeProblem, find_missing_point, list_given_points
from trtdeploy.config.shape_table import TensorSizes
from trtdeploy.core.dtypes import SHAPE_VALUE_TYPES
from trtdeploy.core.ranges import ShapeRange
from trtdeploy.core.tensors import TensorSpec, format_shape

_LARGEST_VALUE = 2**63 - 1
_EXAMPLE_LENGTH = 6


def check_values(
    spec: TensorSpec, given: TensorSizes, counts: Mapping[str, int] | None
) -> ShapeProblem | None:
    """Check the contents given for a shape tensor.

    Args:
        spec: The shape tensor.
        given: Its contents at min, opt and max.
        counts: Number of elements at each point; None when not known.
    """
    subject = f"values of input {spec.name!r}"
    points = list_given_points(given)
    return (
        _check_type(subject, spec)
        or find_missing_point(subject, points, spec)
        or _check_counts(subject, spec, points, counts)
        or _check_order(subject, spec, points)
    )


def explain_missing_values(spec: TensorSpec, shape: ShapeRange) -> ShapeProblem:
    """Say that contents are needed, not only dimensions, and how to write them."""
    count = math.prod(shape.opt)
    low, usual, high = (_list_example(value, count) for value in (1, 8, 64))
    return ShapeProblem(
        f"input {spec.name!r}",
        "no values: its contents, not its dimensions, decide shapes inside the model",
        f"the smallest, usual and largest contents ({count} each), like "
        f"--value '{spec.name}:{low}:{usual}:{high}', or in the profile "
        f"shapes: {{values: {{{spec.name}: {{min: [{low}], opt: [{usual}], max: [{high}]}}}}}}",
        spec.name,
    )


def _list_example(value: int, count: int) -> str:
    shown = [str(value)] * min(count, _EXAMPLE_LENGTH)
    return ",".join(shown if count <= _EXAMPLE_LENGTH else [*shown, "..."])


def _check_type(subject: str, spec: TensorSpec) -> ShapeProblem | None:
    if spec.dtype in SHAPE_VALUE_TYPES:
        return None
    return ShapeProblem(
        subject,
        f"values for a {spec.dtype.label} tensor",
        "an int32, int64 or bool tensor: only those can decide shapes",
        spec.name,
    )


def _check_counts(
    subject: str,
    spec: TensorSpec,
    points: Mapping[str, tuple[int, ...]],
    counts: Mapping[str, int] | None,
) -> ShapeProblem | None:
    for point, row in points.items():
        if counts is not None and len(row) != counts[point]:
            return ShapeProblem(
                subject,
                f"{len(row)} values {list(row)} at {point}",
                f"{counts[point]} (its shape is {format_shape(spec.shape)})",
                spec.name,
            )
    return None


def _check_order(
    subject: str, spec: TensorSpec, points: Mapping[str, tuple[int, ...]]
) -> ShapeProblem | None:
    for index, (low, usual, high) in enumerate(zip(*points.values(), strict=False)):
        fault = f"min {low}, opt {usual}, max {high}"
        if not low <= usual <= high:
            expected = "min <= opt <= max"
        elif max(abs(low), abs(high)) > _LARGEST_VALUE:
            expected = "64-bit integers"
        else:
            continue
        return ShapeProblem(f"{subject}, element {index}", fault, expected, spec.name)
    return None
