"""One output compared over any number of samples."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from trtdeploy.core.arrays import Array
from trtdeploy.parity.accumulator import OutputAccumulator, find_atol
from trtdeploy.parity.counts import ExactCount, find_family
from trtdeploy.parity.judgement import conclude, judge_equality, judge_output
from trtdeploy.parity.noise import NoiseSource
from trtdeploy.parity.noise_figures import EMULATED_LIMITS, NoiseLimits, compare_with_noise
from trtdeploy.parity.noise_sums import NoiseSums
from trtdeploy.parity.result import (
    NoiseComparison,
    OutputComparison,
    OutputMetrics,
    Tolerance,
    Verdict,
)
from trtdeploy.parity.slices import is_float, iterate_chunks
from trtdeploy.parity.tolerance import find_class_axis, find_kind, raise_tolerance

_EXACT_FAMILIES = ("integer", "boolean", "text")


@dataclass(frozen=True)
class ComparisonRules:
    """What outputs are judged by.

    Attributes:
        noise: Honest outcomes to compare with; None judges by the tolerance alone.
        limits: Above which an error is not rounding.
    """

    noise: NoiseSource | None = None
    limits: NoiseLimits = EMULATED_LIMITS


class OutputComparator:
    """Compares one output over any number of samples, in memory that does not grow with them."""

    def __init__(self, name: str, tolerance: Tolerance, rules: ComparisonRules) -> None:
        self._name = name
        self._tolerance = tolerance
        self._rules = rules
        self._metrics: OutputAccumulator | None = None
        self._noise = None if rules.noise is None else NoiseSums(rules.noise, tolerance.rtol)
        self._exact_noise = ExactCount()
        self._variation = SampleVariation()

    def add(self, reference: Array, candidate: Array, outcomes: list[Array] | None = None) -> None:
        """Add the outputs of one run; there is one outcome per run of the noise source."""
        if self._metrics is None:
            axis = find_class_axis(find_kind(self._name, reference), reference.shape)
            self._metrics = OutputAccumulator(self._tolerance, class_axis=axis)
        self._metrics.add(reference, candidate)
        if is_float(reference):
            self._variation.add(reference)
        comparable = reference.shape == candidate.shape
        if self._noise is None or not outcomes or not comparable:
            return
        if is_float(reference) and is_float(candidate):
            self._noise.add(reference, outcomes, candidate)
        elif find_family(reference) in _EXACT_FAMILIES:
            self._add_exact_noise(reference, outcomes)

    def _add_exact_noise(self, reference: Array, outcomes: list[Array]) -> None:
        family = find_family(reference)
        for outcome in outcomes:
            if outcome.shape == reference.shape and find_family(outcome) == family:
                self._exact_noise.add(reference, outcome)

    def finish(self) -> OutputComparison:
        """Return the verdict over everything that was added."""
        if self._metrics is None:
            metrics = OutputMetrics((), "", "")
            findings = [(Verdict.FAIL, "no sample was compared")]
            return conclude(self._name, findings, metrics, self._tolerance, None)
        metrics = self._metrics.finish()
        noise, tolerance = None, self._tolerance
        if self._noise is not None:
            noise = compare_with_noise(self._noise, self._rules.limits)
        if self._noise is not None and noise is not None:
            tolerance = _raise_tolerance(tolerance, noise, self._noise, metrics)
        families = self._metrics.mixed_families
        if families is not None:
            text = f"the reference holds {families[0]} values, the candidate {families[1]}"
            findings = [(Verdict.FAIL, text)]
        else:
            findings = judge_output(metrics, tolerance, noise, self._rules.limits)
            findings += judge_equality(metrics, self._exact_noise)
        findings.extend((Verdict.PASS, note) for note in self._note_data(noise))
        return conclude(self._name, findings, metrics, tolerance, noise)

    def _note_data(self, noise: NoiseComparison | None) -> list[str]:
        notes = []
        if self._noise is not None and self._noise.overflowed:
            notes.append(
                f"{self._noise.overflowed} elements overflow in {self._noise.source.name} too: "
                "the recipe does not suit this model"
            )
        floor = 0.0 if noise is None else noise.relative_l2
        if self._variation.is_blind(floor):
            notes.append(
                "the reference hardly changes from sample to sample "
                f"({self._variation.relative:.1e} of its size, no more than rounding): these "
                "inputs cannot show an error in most layers"
            )
        return notes


def _raise_tolerance(
    tolerance: Tolerance, noise: NoiseComparison, sums: NoiseSums, metrics: OutputMetrics
) -> Tolerance:
    if not sums.source.has_pattern:
        return tolerance
    atol = find_atol(tolerance, metrics.reference_amax or 0.0)
    return raise_tolerance(tolerance, noise.relative_l2, sums.close.measure_fraction(atol))


_SAME = 2.0**-20
"""FP32 sums differ by about this much between samples that make no difference."""


class SampleVariation:
    """RMS difference of consecutive samples over the RMS of the output: no change proves nothing.

    Samples are the positions of axis 0 (a vector is one sample), and runs follow each other; only
    the last sample is kept.
    """

    def __init__(self) -> None:
        self._last: Array | None = None
        self._difference = 0.0
        self._square = 0.0
        self._pairs = 0

    def add(self, reference: Array) -> None:
        """Add the output of one run."""
        samples = reference if reference.ndim > 1 else reference.reshape(1, -1)
        if samples.size == 0:
            return
        if self._last is not None and self._last.shape == samples[:1].shape:
            self._add_pairs(self._last, samples[:1])
        self._add_pairs(samples[:-1], samples[1:])
        # A copy, or the whole output would stay in memory.
        self._last = samples[-1:].copy()

    def _add_pairs(self, earlier: Array, later: Array) -> None:
        for _, (before, after) in iterate_chunks(earlier, later):
            finite = np.isfinite(before) & np.isfinite(after)
            # Half the squared difference of two draws estimates the variance.
            self._difference += float(((after - before)[finite] ** 2).sum()) / 2
            self._square += float((after[finite] ** 2).sum())
            self._pairs += before.size

    @property
    def relative(self) -> float:
        """Relative variation; 0 when everything is zero."""
        return math.sqrt(self._difference / self._square) if self._square > 0 else 0.0

    def is_blind(self, noise_floor: float) -> bool:
        """Tell whether samples differ by no more than rounding does.

        Args:
            noise_floor: Relative L2 error of rounding; 0 when unknown.
        """
        return self._pairs > 0 and self.relative <= max(noise_floor, _SAME)
