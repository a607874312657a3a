"""Sizes held to what a model says it accepts (multiples of 32, at most 512 tokens)."""

from __future__ import annotations

from collections.abc import Mapping

from trtdeploy.config.shape_table import AxisRange, AxisSizes
from trtdeploy.core.ranges import POINTS
from trtdeploy.core.tensors import SizeRule


def fit_sizes(
    assumed: AxisRange, rule: SizeRule | None, given: AxisSizes | None = None
) -> AxisRange:
    """Move sizes that nobody asked for to the nearest ones that the model accepts.

    Args:
        assumed: Complete sizes, in order.
        rule: What the model accepts; None accepts everything.
        given: Points that were asked for; they stay what they are.
    """
    if rule is None:
        return assumed
    asked = {} if given is None else dict(given)
    return AxisRange(
        *(
            size if asked.get(point) is not None else rule.nearest(size)
            for point, size in zip(POINTS, assumed, strict=True)
        )
    )


def find_rule_fault(sizes: AxisRange, rule: SizeRule | None) -> tuple[str, str] | None:
    """Return (given, expected) when sizes break the rule; a size of 0 is another rule's affair."""
    if rule is None:
        return None
    wrong: Mapping[str, int] = {
        point: size
        for point, size in zip(POINTS, sizes, strict=True)
        if size and not rule.accepts(size)
    }
    if not wrong:
        return None
    given = ", ".join(f"{point} {size}" for point, size in wrong.items())
    return given, f"{rule}: the file's metadata says that the model takes no others"
