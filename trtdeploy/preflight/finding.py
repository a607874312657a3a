"""One thing the check found, and the kinds of things it can find."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Severity(str, Enum):
    """How much a finding matters; the members are in falling order."""

    BLOCKER = "blocker"
    """The model cannot be loaded, built or run as asked."""
    HAZARD = "hazard"
    """It may work, and it may be wrong or surprising."""
    NOTE = "note"
    """Nothing is wrong; the user has to know it."""


class Affects(str, Enum):
    """Whose problem a finding is."""

    BASELINE = "baseline"
    ENGINE = "engine"
    BOTH = "baseline and engine"


@dataclass(frozen=True)
class Place:
    """Where a finding lies.

    Attributes:
        node: The user's node name, ``unnamed #k`` for the k-th node of its graph (from 0), or
            empty when the finding concerns the whole graph.
        op_type: Operator of that node; empty for the whole graph.
        domain: Operator domain of that node; empty is the standard one.
    """

    node: str = ""
    op_type: str = ""
    domain: str = ""


WHOLE_GRAPH = Place()


@dataclass(frozen=True)
class Finding:
    """One blocker, hazard or note.

    Attributes:
        code: Stable kebab-case id of the kind of finding.
        severity: Whether it stops the build, may falsify the result, or is worth knowing.
        affects: Whether the FP32 baseline, the engine, or both suffer.
        node: See ``Place``.
        op_type: See ``Place``.
        domain: See ``Place``.
        message: What is wrong and why, naming tensors and axes.
        remedy: What to do about it.
    """

    code: str
    severity: Severity
    affects: Affects
    node: str
    op_type: str
    domain: str
    message: str
    remedy: str

    @property
    def place(self) -> Place:
        """Where it lies."""
        return Place(self.node, self.op_type, self.domain)

    @property
    def blocks_engine(self) -> bool:
        """True for a blocker that the engine suffers from."""
        return self.severity is Severity.BLOCKER and self.affects is not Affects.BASELINE


@dataclass(frozen=True)
class FindingKind:
    """A kind of finding: what all findings with one code have in common."""

    code: str
    severity: Severity
    affects: Affects

    def at(
        self,
        place: Place,
        message: str,
        remedy: str,
        *,
        affects: Affects | None = None,
        severity: Severity | None = None,
    ) -> Finding:
        """Return a finding of this kind.

        Args:
            place: Where it lies.
            message: What is wrong and why.
            remedy: What to do about it.
            affects: Whom it affects, where that differs from the kind's usual answer.
            severity: How much it matters, where that differs from the kind's usual answer.
        """
        return Finding(
            self.code,
            severity or self.severity,
            affects or self.affects,
            place.node,
            place.op_type,
            place.domain,
            message,
            remedy,
        )
