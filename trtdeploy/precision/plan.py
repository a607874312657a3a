"""What a recipe decided: one type and one reason per node and per unusual constant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from annotated_types import Ge

from trtdeploy.config.recipe import Recipe
from trtdeploy.core.dtypes import DType


@dataclass(frozen=True)
class NodeDecision:
    """The type one node computes in.

    Attributes:
        dtype: Type of its floating-point operands and results.
        rule: Class name of the rule that decided, or ``recipe``.
        reason: Why, in words a report can print.
    """

    dtype: DType
    rule: str
    reason: str


@dataclass(frozen=True)
class ConstantDecision:
    """What happens to a constant that does not fit the narrow type.

    Attributes:
        name: Name of the initializer, or ``node.value`` for an attribute.
        value: The value farthest out of range, as text: it may be infinite.
        action: ``clamp`` or ``keep``.
        limit: The magnitude it is clamped to; None when kept.
    """

    name: str
    value: str
    action: str
    limit: float | None
    reason: str


@dataclass(frozen=True)
class PrecisionPlan:
    """Decisions for a whole model.

    Attributes:
        recipe: The recipe that was asked for.
        nodes: Decision of every node with floating-point operands, by node name.
        constants: Constants outside the narrow type's range.
        notes: Observations that change nothing (random nodes, for instance).
        pairs: Names of the QuantizeLinear and DequantizeLinear nodes. Their type is that of the
            scale; they belong to the layers around them and are neither counted nor reported.
        quantized: Layers whose operands come in 8 bits, with that type and the reason. What is
            reported of them; their entry in ``nodes`` is the type of their result.
    """

    recipe: Recipe
    nodes: Mapping[str, NodeDecision]
    constants: tuple[ConstantDecision, ...] = ()
    notes: tuple[str, ...] = ()
    pairs: frozenset[str] = frozenset()
    quantized: Mapping[str, NodeDecision] = field(default_factory=dict)

    def dtype_of(self, node_name: str) -> DType:
        """Return the floating-point type of a node; FP32 for nodes without a decision."""
        decision = self.nodes.get(node_name)
        return decision.dtype if decision else DType.FLOAT32

    def clamp_limits(self) -> dict[str, float]:
        """Return the clamp limit of each constant that is clamped."""
        return {c.name: c.limit for c in self.constants if c.limit is not None}

    def count_by_dtype(self) -> dict[str, int]:
        """Return how many nodes compute in each type."""
        return dict(Counter(decision.dtype.label for decision in self.reported().values()))

    def reported(self) -> dict[str, NodeDecision]:
        """Return the decisions a person wants to see: 8 bits where operands have them."""
        return {
            name: self.quantized.get(name, decision)
            for name, decision in self.nodes.items()
            if name not in self.pairs
        }

    def summarize(self, *, ranges_measured: bool = False) -> PrecisionRecord:
        """Return the decisions that manifests and reports keep.

        Args:
            ranges_measured: Samples were given and looked at.
        """
        return PrecisionRecord(
            recipe=self.recipe.name,
            counts=self.count_by_dtype(),
            nodes=self.reported(),
            constants=self.constants,
            notes=self.notes,
            ranges_measured=ranges_measured,
        )


@dataclass(frozen=True)
class PrecisionRecord:
    """What a plan decided, as a person wants to see it.

    Attributes:
        recipe: Name of the recipe that was asked for.
        counts: How many nodes compute in each type.
        nodes: Decisions in graph order.
        constants: Constants outside the narrow type's range.
        notes: Observations that change nothing.
        ranges_measured: Samples were given and looked at.
    """

    recipe: str
    counts: Mapping[str, Annotated[int, Ge(0)]]
    nodes: Mapping[str, NodeDecision]
    constants: tuple[ConstantDecision, ...]
    notes: tuple[str, ...]
    ranges_measured: bool = False
