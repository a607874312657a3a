"""What the fields of a manifest must agree on; what each must be by itself, its type says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trtdeploy.core.ranges import OptimizationProfile, ShapeRange, ValueRange
from trtdeploy.report.document import BuildReport, SourceModel


def find_conflict(manifest: BuildReport) -> str:
    """Return the first conflict as ``place: what is wrong``; empty when there is none."""
    return next(_find_conflicts(manifest), "")


def _find_conflicts(manifest: BuildReport) -> Iterator[str]:
    if (manifest.status == "engine") != (manifest.engine is not None):
        yield f"engine: the status is {manifest.status!r}, which does not fit"
    if not manifest.optimization_profiles:
        yield "optimization_profiles: there is none"
    for position, profile in enumerate(manifest.optimization_profiles):
        place = f"optimization_profiles.{position}"
        yield from _find_wrong_ranges(place, profile)
        yield from _find_other_inputs(place, profile, manifest.source)


def _find_wrong_ranges(place: str, profile: OptimizationProfile) -> Iterator[str]:
    tables: dict[str, Mapping[str, ShapeRange | ValueRange]]
    tables = {"shapes": profile.shapes, "values": profile.values}
    for kind, table in tables.items():
        for name, sizes in table.items():
            if not len(sizes.min) == len(sizes.opt) == len(sizes.max):
                yield f"{place}.{kind}: {name!r}: min, opt and max have different lengths"
                return
            rows = zip(sizes.min, sizes.opt, sizes.max, strict=True)
            if not all(low <= usual <= high for low, usual, high in rows):
                yield f"{place}.{kind}: {name!r}: min, opt and max are not in this order"
            if kind == "shapes" and any(size < 0 for size in sizes.min):
                yield f"{place}.{kind}: {name!r}: a size is negative"


def _find_other_inputs(
    place: str, profile: OptimizationProfile, source: SourceModel
) -> Iterator[str]:
    inputs = {tensor.name: tensor.shape for tensor in source.inputs}
    if set(profile.shapes) != set(inputs):
        yield f"{place}: is for {sorted(profile.shapes)}, and the inputs are {sorted(inputs)}"
        return
    if not set(profile.values) <= set(inputs):
        yield f"{place}: values are for {sorted(profile.values)}, which are not all inputs"
    for name, sizes in profile.shapes.items():
        shape = inputs[name]
        if shape is not None and len(shape) != len(sizes.min):
            yield f"{place}: {name!r} has {len(sizes.min)} sizes, and the input {len(shape)}"
