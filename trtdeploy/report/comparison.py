"""One output at one point: what every part of the page is made of."""

from __future__ import annotations

from dataclasses import dataclass

from trtdeploy.parity.result import OutputComparison, ParityReport, PointResult, Verdict


@dataclass(frozen=True)
class Comparison:
    """One output at one point.

    Attributes:
        point_name: Name of the point, with its optimization profile where there are several.
    """

    point_name: str
    point: PointResult
    output: OutputComparison

    @property
    def severity(self) -> int:
        """0 for a pass, more for what is worse."""
        return list(Verdict).index(self.output.verdict)


def list_comparisons(parity: ParityReport) -> list[Comparison]:
    """Return every output at every point, in the order they were run."""
    return [
        Comparison(parity.name_point(point), point, output)
        for point in parity.points
        for output in point.outputs
    ]
