"""What calibration found about a model's tensors, before any method is chosen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from trtdeploy.calibration.histogram import MagnitudeHistogram
from trtdeploy.calibration.methods import MethodChoice, find_amax
from trtdeploy.core.errors import InputError, UsageError
from trtdeploy.core.number_formats import INT8, QuantizedType

_MOST_NAMED = 5


@dataclass(frozen=True)
class CalibrationData:
    """One set of samples that was run.

    Attributes:
        description: For people, e.g. ``calib.npz (70 samples)``.
        sha256: Of the files; of synthetic data, of what it was made from.
        samples: How many samples were counted.
        skipped: Samples left out because of NaN or infinity: file, index, where it was found.
        is_synthetic: The samples were made up.
    """

    description: str
    sha256: str
    samples: int
    skipped: tuple[str, ...] = ()
    is_synthetic: bool = False


@dataclass(frozen=True)
class CalibrationStatistics:
    """Histograms of a model's tensors; amax follows from them without running the model.

    Attributes:
        model_sha256: Of the model file (and its data files) that was run.
        histograms: Values by tensor, in graph order.
        data: What was run.
        notes: What a person should know, one sentence each.
    """

    model_sha256: str
    histograms: Mapping[str, MagnitudeHistogram]
    data: tuple[CalibrationData, ...]
    notes: tuple[str, ...] = ()

    @property
    def samples(self) -> int:
        """How many samples were counted."""
        return sum(data.samples for data in self.data)

    @property
    def skipped(self) -> tuple[str, ...]:
        """Samples that were left out, and why."""
        return tuple(text for data in self.data for text in data.skipped)

    @property
    def is_synthetic(self) -> bool:
        """True when any samples were made up: scales prove nothing then."""
        return any(data.is_synthetic for data in self.data)

    def compute_amax(self, methods: MethodChoice, kind: QuantizedType = INT8) -> dict[str, float]:
        """Return the amax of each tensor: finite, above 0, at most the largest magnitude.

        Args:
            methods: Which method for which tensor.
            kind: What the tensors are quantized to.

        Raises:
            UsageError: A pattern of ``methods`` matches no tensor.
        """
        methods.check_patterns(self.histograms)
        return {
            name: find_amax(found, methods.find_method(name), kind, percentile=methods.percentile)
            for name, found in self.histograms.items()
        }

    def select(self, tensors: Iterable[str]) -> CalibrationStatistics:
        """Return what was found about these tensors.

        Raises:
            InputError: Some were not measured.
        """
        wanted = tuple(tensors)
        missing = [name for name in wanted if name not in self.histograms]
        if missing:
            raise InputError(
                f"the calibration measured {len(self.histograms)} tensors, and not "
                f"{_list_names(missing)}",
                hint="Calibrate again from the samples: another recipe or other pins need other "
                "tensors.",
            )
        chosen = {name: self.histograms[name] for name in wanted}
        return CalibrationStatistics(self.model_sha256, chosen, self.data, self.notes)


def merge_statistics(parts: Sequence[CalibrationStatistics]) -> CalibrationStatistics:
    """Return statistics as if one calibration had seen the samples of all parts.

    The order of the parts does not matter for any amax.

    Args:
        parts: At least one.

    Raises:
        InputError: The parts are of different models, measured different tensors, or have seen the
            same data.
        UsageError: There are no parts.
    """
    if not parts:
        raise UsageError("there are no calibration statistics to merge")
    first = parts[0]
    for other in parts[1:]:
        _check_mergeable(first, other)
    data = tuple(data for part in parts for data in part.data)
    check_distinct([(each.description, each.sha256) for each in data])
    histograms = {}
    for name in first.histograms:
        histograms[name] = merged = MagnitudeHistogram()
        for part in parts:
            merged.merge(part.histograms[name])
    notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
    return CalibrationStatistics(first.model_sha256, histograms, data, notes)


def check_distinct(data: Sequence[tuple[str, str]]) -> None:
    """Refuse samples that are given more than once: they would count for more than others.

    Args:
        data: Description and SHA-256 of each set of samples.

    Raises:
        InputError: Two have the same content.
    """
    hashes = Counter(sha256 for _, sha256 in data)
    repeated = [description for description, sha256 in data if hashes[sha256] > 1]
    if repeated:
        raise InputError(
            f"the same samples would be counted twice: {' and '.join(repeated)}",
            hint="Give each set of samples once.",
        )


def _check_mergeable(first: CalibrationStatistics, other: CalibrationStatistics) -> None:
    if other.model_sha256 != first.model_sha256:
        raise InputError(
            "these calibrations are of different models: SHA-256 "
            f"{first.model_sha256[:12]}... and {other.model_sha256[:12]}...",
            hint="Calibrate each model with samples of its own.",
        )
    different = first.histograms.keys() ^ other.histograms.keys()
    if different:
        raise InputError(
            f"only one of the calibrations has measured {_list_names(sorted(different))}",
            hint="Calibrate again with the same recipe and the same pins.",
        )


def _list_names(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:_MOST_NAMED])
    more = len(names) - _MOST_NAMED
    return f"{shown} and {more} more" if more > 0 else shown
