"""Which shapes a parity check runs: every corner of every optimization profile, and more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from trtdeploy.config.batch_layout import BatchLayout
from trtdeploy.core.ranges import POINTS, OptimizationProfile

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class ParityPoint:
    """One set of input shapes to run.

    Attributes:
        name: ``min``, ``opt``, ``max``, ``batch 3``, or several that are the same: ``min = opt``.
        shapes: By input.
        values: Contents of shape tensors.
    """

    optimization_profile: str
    name: str
    shapes: Shapes
    values: Shapes = field(default_factory=dict)


def find_points(
    optimization_profiles: Sequence[OptimizationProfile], batch: BatchLayout | None = None
) -> tuple[ParityPoint, ...]:
    """Return the points of all optimization profiles, each set of shapes once.

    Within an optimization profile: ``min``, ``opt``, ``max`` (one point where they coincide), then
    odd batch sizes between the smallest and the largest at ``opt``: kernels are tuned for even
    ones, and an error in the rest of a tile shows at odd ones.

    Args:
        optimization_profiles: Of the engine; two of them may share shapes, and an engine chooses
            its kernels for each anew, so that both are run.
        batch: Where the batch is; None leaves the odd sizes out.
    """
    points: list[ParityPoint] = []
    for entry in optimization_profiles:
        corners = _merge_equal([_make_corner(entry, point) for point in POINTS])
        points.extend(corners)
        if batch is not None:
            known = [corner.shapes for corner in corners]
            points.extend(p for p in _find_odd_batches(entry, batch) if p.shapes not in known)
    return tuple(points)


def _find_batch_range(entry: OptimizationProfile, batch: BatchLayout) -> tuple[int, int] | None:
    """Return the smallest and the largest batch; None when no input of the batch has a range."""
    ranges = [
        (entry.shapes[name].min[axis], entry.shapes[name].max[axis])
        for name, axis in batch.inputs.items()
        if name in entry.shapes
    ]
    if not ranges:
        return None
    return max(low for low, _ in ranges), min(high for _, high in ranges)


def with_batch(point: ParityPoint, batch: BatchLayout, size: int) -> ParityPoint:
    """Return the point with another batch size, on every input that carries the batch."""
    shapes = {
        name: _replace_axis(shape, batch.inputs.get(name), size)
        for name, shape in point.shapes.items()
    }
    return replace(point, name=f"batch {size}", shapes=shapes)


def find_independence_points(
    optimization_profiles: Sequence[OptimizationProfile], batch: BatchLayout | None
) -> tuple[ParityPoint, ...]:
    """Return points whose batch is twice the smallest, so that both halves can be run alone.

    An optimization profile that does not reach that far has none.

    Args:
        optimization_profiles: One point each, where the batch may be that large.
        batch: Where the batch is; None when it is fixed.
    """
    points = []
    for entry in optimization_profiles:
        limits = None if batch is None else _find_batch_range(entry, batch)
        if batch is None or limits is None:
            continue
        size = 2 * max(limits[0], 1)
        if size <= limits[1]:
            point = with_batch(_make_corner(entry, "opt"), batch, size)
            points.append(replace(point, name="batch independence"))
    return tuple(points)


def _make_corner(entry: OptimizationProfile, point: str) -> ParityPoint:
    shapes = {name: sizes.at(point) for name, sizes in entry.shapes.items()}
    values = {name: contents.at(point) for name, contents in entry.values.items()}
    return ParityPoint(entry.name, point, shapes, values)


def _merge_equal(corners: Sequence[ParityPoint]) -> list[ParityPoint]:
    merged: list[ParityPoint] = []
    for corner in corners:
        same = [
            i
            for i, other in enumerate(merged)
            if (other.shapes, other.values) == (corner.shapes, corner.values)
        ]
        if same:
            first = merged[same[0]]
            merged[same[0]] = replace(first, name=f"{first.name} = {corner.name}")
        else:
            merged.append(corner)
    return merged


def _find_odd_batches(entry: OptimizationProfile, batch: BatchLayout) -> Iterator[ParityPoint]:
    limits = _find_batch_range(entry, batch)
    if limits is None:
        return
    odd = [size for size in range(limits[0] + 1, limits[1]) if size % 2 == 1]
    # The smallest and the largest odd size stand for those between.
    for size in dict.fromkeys(odd[:1] + odd[-1:]):
        yield with_batch(_make_corner(entry, "opt"), batch, size)


def _replace_axis(shape: tuple[int, ...], axis: int | None, size: int) -> tuple[int, ...]:
    if axis is None:
        return shape
    return (*shape[:axis], size, *shape[axis + 1 :])
