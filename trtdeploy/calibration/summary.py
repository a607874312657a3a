"""What came of a calibration, and what reports say of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trtdeploy.calibration.methods import MethodChoice
from trtdeploy.calibration.statistics import CalibrationData, CalibrationStatistics


@dataclass(frozen=True)
class TensorRange:
    """Where a tensor is clipped; None is a figure that was not finite.

    Attributes:
        amax: The largest magnitude that is kept; what lies above is clipped.
        largest: The largest magnitude that was seen.
        method: That chose amax.
        one_sided: It is never negative.
    """

    amax: float | None
    largest: float | None
    method: str
    one_sided: bool


@dataclass(frozen=True)
class CalibrationSummary:
    """How the scales of activations were found.

    Attributes:
        method: For tensors that no pattern matches.
        by_tensor: Pattern and method of the others.
        percentile: Share of the magnitudes that ``percentile`` keeps.
        data: What was run.
        tensors: In graph order.
        notes: What a person should know.
        samples: How many were counted.
        is_synthetic: Some samples were made up, so the scales prove nothing.
    """

    method: str
    by_tensor: tuple[tuple[str, str], ...]
    percentile: float
    data: tuple[CalibrationData, ...]
    tensors: Mapping[str, TensorRange]
    notes: tuple[str, ...]
    samples: int = field(init=False, default=0)
    is_synthetic: bool = field(init=False, default=True)

    def __post_init__(self) -> None:
        """Derive what follows from the data."""
        object.__setattr__(self, "samples", sum(data.samples for data in self.data))
        object.__setattr__(self, "is_synthetic", any(data.is_synthetic for data in self.data))

    @property
    def skipped(self) -> tuple[str, ...]:
        """Samples that were left out, and why."""
        return tuple(text for data in self.data for text in data.skipped)


@dataclass(frozen=True)
class Calibration:
    """The amax of each quantized value, and where it comes from.

    Attributes:
        statistics: What the samples showed.
        methods: How amax follows from it.
        amax: Largest magnitude kept, by value name.
    """

    statistics: CalibrationStatistics
    methods: MethodChoice
    amax: Mapping[str, float]

    def summarize(self) -> CalibrationSummary:
        """Return what a report says of it."""
        found = self.statistics.histograms
        return CalibrationSummary(
            method=self.methods.default,
            by_tensor=self.methods.by_tensor,
            percentile=self.methods.percentile,
            data=self.statistics.data,
            tensors={
                name: TensorRange(
                    amax,
                    found[name].largest,
                    self.methods.find_method(name),
                    found[name].is_one_sided,
                )
                for name, amax in self.amax.items()
            },
            notes=self.statistics.notes,
        )
