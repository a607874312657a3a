"""KeepShapeArithmeticRule: floating-point numbers that become sizes."""

from __future__ import annotations

from collections.abc import Iterator

from trtdeploy.graph.shape_values import find_shape_arithmetic
from trtdeploy.precision.context import RuleContext
from trtdeploy.precision.rules.rule import Kept


class KeepShapeArithmeticRule:
    """Keep nodes between a ``Shape`` and the operand that uses it as a size.

    FP16 holds integers exactly only up to 2048: a 4000-pixel side would be off by one.
    """

    def find(self, context: RuleContext) -> Iterator[Kept]:
        """Yield nodes that compute shapes in floating point."""
        for name, node in find_shape_arithmetic(context.index).items():
            yield name, f"{node.op_type} computes a shape"
