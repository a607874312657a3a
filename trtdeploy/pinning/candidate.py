"""What can be pinned, and what was measured with some of it pinned."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class Candidate:
    """Nodes that are pinned together.

    Attributes:
        name: Of the node that the others belong to.
        nodes: All of them, in graph order.
        flops: Work of one run that leaves the narrow type with them; None when not known.
    """

    name: str
    op_type: str
    nodes: tuple[str, ...]
    flops: int | None = None

    def split(self, op_types: Mapping[str, str]) -> tuple[Candidate, ...]:
        """Return one candidate for each node."""
        return tuple(Candidate(name, op_types.get(name, ""), (name,)) for name in self.nodes)


def list_nodes(candidates: Sequence[Candidate]) -> list[str]:
    """Return the nodes of some candidates."""
    return [node for candidate in candidates for node in candidate.nodes]


@dataclass(frozen=True)
class Score:
    """How far the outputs are off.

    Attributes:
        noise: Power of the error by output, as a share of the power of the signal.
        excess: Error divided by what the target allows; the target is reached up to 1.
        value: The figure that the target is about, in its own unit.
    """

    noise: Mapping[str, float]
    excess: float
    value: float | None = None

    @property
    def reached(self) -> bool:
        """True when the target is met."""
        return self.excess <= 1.0

    @property
    def worst_noise(self) -> float:
        """Of the output that is farthest off."""
        return max(self.noise.values(), default=0.0)

    @property
    def sqnr_db(self) -> float | None:
        """Of the output that is farthest off; None without an error, or without a finite one."""
        worst = self.worst_noise
        return -10.0 * math.log10(worst) if 0 < worst < math.inf else None


class Evaluator(Protocol):
    """Measures a model, for as often as a search asks."""

    def measure(self, pinned: Sequence[Candidate]) -> Score:
        """Return the score with these candidates pinned, and all others narrow."""
        ...

    def measure_alone(self, candidate: Candidate) -> Score:
        """Return the score with this candidate narrow, and nothing else."""
        ...


@dataclass(frozen=True)
class PinningOutcome:
    """What a search found.

    Attributes:
        candidates: All of them, those that do the most harm first.
        alone: Score of each that was measured alone, by name.
        plain: With nothing pinned.
        pinned: The smallest set found; empty when nothing has to be pinned, or nothing helps.
        hybrid: With that set pinned.
        all_pinned: With everything pinned; None when that was not needed.
        runs: How often the model was measured.
        notes: What a person should know, one sentence each.
    """

    candidates: tuple[Candidate, ...]
    alone: Mapping[str, Score]
    plain: Score
    pinned: tuple[Candidate, ...]
    hybrid: Score
    all_pinned: Score | None
    runs: int
    notes: tuple[str, ...] = field(default=())

    @property
    def reached(self) -> bool:
        """True when the target is met."""
        return self.hybrid.reached
