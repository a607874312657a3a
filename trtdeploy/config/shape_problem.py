"""One thing wrong with requested sizes, and the checks that need one tensor only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trtdeploy.config.shape_table import LARGEST_SIZE, AxisRange, AxisSizes, TensorSizes
from trtdeploy.core.ranges import POINTS
from trtdeploy.core.tensors import TensorSpec, format_shape


@dataclass(frozen=True)
class ShapeProblem:
    """What was given where, and what was expected.

    Attributes:
        subject: The input and axis, or the symbol.
        given: What the request says.
        expected: What would have been right.
        input_name: Input concerned; None for a symbol.
        axis: Axis concerned; None for the whole input.
    """

    subject: str
    given: str
    expected: str
    input_name: str | None = None
    axis: int | None = None

    def __str__(self) -> str:
        """Return the problem as one line."""
        return f"{self.subject}: given {self.given}; expected {self.expected}"


@dataclass
class ExplicitShape:
    """What a table says about one input, axis by axis.

    Attributes:
        axes: Sizes of the axes that passed; all axes when the model states no rank.
        problems: What is wrong with the others.
    """

    axes: dict[int, AxisRange] = field(default_factory=dict)
    problems: list[ShapeProblem] = field(default_factory=list)


def read_explicit_shape(spec: TensorSpec, sizes: TensorSizes, *, allow_zero: bool) -> ExplicitShape:
    """Check the shape given for one input against what the model says of it."""
    result = ExplicitShape()
    points = list_given_points(sizes)
    if whole := _check_whole_shape(spec, points):
        result.problems.append(whole)
        return result
    for axis in range(len(points["opt"])):
        given = {point: shape[axis] for point, shape in points.items()}
        problem = _check_axis(spec, axis, given, allow_zero=allow_zero)
        if problem is None:
            result.axes[axis] = AxisRange(**given)
        else:
            result.problems.append(problem)
    return result


def check_symbol_sizes(symbol: str, sizes: AxisSizes, *, allow_zero: bool) -> ShapeProblem | None:
    """Check the sizes given for a symbol; points may be left out."""
    given = {point: size for point in POINTS if (size := getattr(sizes, point)) is not None}
    fault = _find_size_fault(given, allow_zero=allow_zero)
    return ShapeProblem(f"symbol {symbol!r}", *fault) if fault else None


def list_given_points(sizes: TensorSizes) -> dict[str, tuple[int, ...]]:
    """Return the points that were given, in the order min, opt, max."""
    return {point: row for point in POINTS if (row := getattr(sizes, point)) is not None}


def find_missing_point(
    subject: str, points: Mapping[str, object], spec: TensorSpec
) -> ShapeProblem | None:
    """Report points that were left out; a tensor needs all three."""
    missing = [point for point in POINTS if point not in points]
    if not missing:
        return None
    return ShapeProblem(subject, f"no {' and no '.join(missing)}", "min, opt and max", spec.name)


def _check_whole_shape(
    spec: TensorSpec, points: Mapping[str, tuple[int, ...]]
) -> ShapeProblem | None:
    subject = f"input {spec.name!r}"
    if missing := find_missing_point(subject, points, spec):
        return missing
    rank = len(points["opt"]) if spec.rank is None else spec.rank
    wrong = {point: shape for point, shape in points.items() if len(shape) != rank}
    if not wrong:
        return None
    point, shape = next(iter(wrong.items()))
    expected = f"{rank} sizes"
    if spec.shape is not None:
        expected = f"{rank} sizes ({format_shape(spec.shape)})" if rank else "[]: it is a scalar"
    return ShapeProblem(
        subject, f"{len(shape)} sizes {list(shape)} at {', '.join(wrong) or point}", expected,
        spec.name,
    )  # fmt: skip


def _check_axis(
    spec: TensorSpec, axis: int, given: dict[str, int], *, allow_zero: bool
) -> ShapeProblem | None:
    dim = None if spec.shape is None else spec.shape[axis]
    subject = f"input {spec.name!r}, axis {axis}"
    if isinstance(dim, int):
        wrong = {point: size for point, size in given.items() if size != dim}
        if not wrong:
            return None
        fault = (_list_points(wrong), f"{dim}, which is fixed in the model")
    else:
        subject += f" ({dim!r})" if dim else ""
        found = _find_size_fault(given, allow_zero=allow_zero)
        if found is None:
            return None
        fault = found
    return ShapeProblem(subject, *fault, spec.name, axis)


def _find_size_fault(given: dict[str, int], *, allow_zero: bool) -> tuple[str, str] | None:
    """Return (given, expected) for the first rule that sizes break."""
    if negative := {point: size for point, size in given.items() if size < 0}:
        return _list_points(negative), "a real size: an optimization profile has no -1"
    if zero := {point: size for point, size in given.items() if size == 0 and not allow_zero}:
        return _list_points(zero), "at least 1 (shapes.allow_zero permits empty tensors)"
    if large := {point: size for point, size in given.items() if size > LARGEST_SIZE}:
        return _list_points(large), f"at most {LARGEST_SIZE}"
    if list(given.values()) != sorted(given.values()):
        return _list_points(given), "min <= opt <= max"
    return None


def _list_points(points: Mapping[str, int]) -> str:
    return ", ".join(f"{point} {size}" for point, size in points.items())
