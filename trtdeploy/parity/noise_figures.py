"""Figures that say in which way an error is unlike rounding, and their limits.

With the sums of ``noise_sums`` (a the candidate's error, b that of rounding), over n elements:

===============  ================================================================================
error            rho = (1 + m) / (1 - m), m = mean((a^2 - b^2) / (a^2 + b^2 + l^2)). For two
                 Gaussian errors rho is the ratio of their sizes; 1 when neither is larger.
segment error    the same within one of up to 16 stretches of the output
slice error      the same within one slice: two swapped channels of eighty
bias             sqrt(sum_k mean_k(a/q)^2 / sum_k mean_k(b/q)^2) over slices k: rounding has no
                 preferred sign, a wrong weight shifts a channel to one side
trend            the same with the slope of a/q over the reference: a wrong scale grows with r
expected output  largest ||c - e|| / ||b|| of a slice's segment; only where all bits must agree
===============  ================================================================================

Limits allow for chance: a mean over n elements, or a sum over K slices, of two honest runs may
differ by a factor of about exp(z / sqrt(n)) (the logarithm of a ratio of two chi-square variables
of n degrees of freedom has the standard deviation 2 / sqrt(n)).

The bases were chosen by hand, looking at the models below, so that these counts are no independent
test of them (FP16 and BF16, synthetic inputs, MiniLM, YOLOv8n, ResNet-50, ViT, MobileNetV3, three
PP-OCR models, magika, 14 settings):

* a model emulated from the same recipe gives 1 exactly and passed in all 14;
* honest models of other make (every tensor rounded, fewer roundings, sums in another order) passed
  36 times of 42. The six: MobileNetV3 (suspect, 1.9 times), BF16 MiniLM (fails, on one dead hidden
  unit) and magika (fails; rounding everything overflows there), two each. Where all outputs err
  together, as with one-sided activations, there is less chance to average out than assumed;
* one weight tensor scaled by 1.01 at FP16 did not pass in any of 40 layers of MiniLM. Of 21 layers
  of YOLOv8n, 3 passed at 160 x 160 and 10 at 320 x 320: there the effect is within rounding, and
  only ``expected output`` shows it. At BF16 most layers pass. A dropped activation or a swap that
  hardly moves the outputs passes too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import numpy as np

from trtdeploy.core.arrays import FloatArray
from trtdeploy.parity.noise_sums import (
    COUNT,
    DRIFT,
    GAP_SQUARE,
    LEAD,
    LEAN,
    NOISE_DRIFT,
    NOISE_LEAN,
    NOISE_SQUARE,
    SQUARE,
    VALUE,
    NoiseSums,
)
from trtdeploy.parity.result import NoiseComparison, NoiseFigure
from trtdeploy.parity.slices import SliceView

_SMALLEST_SLICE = 32
_FEWEST_SLICES = 8
_CHANCE, _SLICE_CHANCE = 3.0, 6.0
"""z of the chance factor; larger for the worst of many slices."""
_BITS_LOST = 2.0**-22


@dataclass(frozen=True)
class NoiseLimits:
    """How many times the rounding error is still rounding, before the allowance for chance.

    Attributes:
        error: For a whole output.
        segment_error: For the worst of its stretches.
        slice_error: For the worst of its slices: of many, one is off by chance.
        bias: For shifts to one side.
        trend: For errors that grow with the value.
        fail_factor: That many times a limit is a failure, no longer a suspicion.
    """

    error: float = 1.4
    segment_error: float = 1.6
    slice_error: float = 2.5
    bias: float = 1.4
    trend: float = 1.6
    fail_factor: float = 2.0


EXPECTED_LIMIT = 0.02
"""Share of the rounding error by which a bit-identical emulation may differ, for its FP32 sums."""
EMULATED_LIMITS = NoiseLimits()
_MEASURED_FACTOR = 3.0
MEASURED_LIMITS = replace(
    EMULATED_LIMITS,
    **{
        entry.name: getattr(EMULATED_LIMITS, entry.name) * _MEASURED_FACTOR
        for entry in fields(NoiseLimits)
        if entry.name != "fail_factor"
    },
)
"""For engines: kernels may also add up in FP16, which no emulation of stored tensors shows."""
SHOWN_ONLY = NoiseLimits(*(1e6,) * 5)
"""For a candidate that is itself the honest outcome: the floor is shown, the tolerance judges."""


def compare_with_noise(sums: NoiseSums, limits: NoiseLimits) -> NoiseComparison | None:
    """Return the figures of one output; None when nothing was measured.

    That is so when no outcome could be compared, or when rounding the inputs changed nothing: they
    are integers, which says nothing about the layers.

    Args:
        sums: Everything that was added.
        limits: Before the allowance for chance.
    """
    total, source = sums.total, sums.source
    if total[COUNT] == 0 or (total[NOISE_SQUARE] == 0 and not source.has_pattern):
        return None
    figures = [NoiseFigure("error", _find_ratio(total), _widen(limits.error, total[COUNT]))]
    for view, cells in sums.slices.read():
        figures.extend(_compare_slices(view, cells, limits, sums))
    squares = total[SQUARE]
    floor = math.sqrt(total[NOISE_SQUARE] / squares) if squares > 0 else 0.0
    return NoiseComparison(
        source.name, floor, tuple(_keep_worst(figures)), is_estimate=not source.has_pattern
    )


def _compare_slices(
    view: SliceView, cells: FloatArray, limits: NoiseLimits, sums: NoiseSums
) -> Iterator[NoiseFigure]:
    axis = f"axis {view.axis}"
    whole = cells.sum(axis=2)
    yield from _compare_worst_slice(whole, axis, limits)
    segments = [
        (f"{axis}, stretch {i + 1} of {view.segments}", cells[:, :, i])
        for i in range(view.segments)
    ]
    if view.segments == 1:
        segments = []
    for where, part in segments:
        total = part.sum(axis=1)
        if total[COUNT]:
            limit = _widen(limits.segment_error, total[COUNT])
            yield NoiseFigure("segment error", _find_ratio(total), limit, where)
    if sums.source.has_pattern:
        for where, part in [(axis, whole), *segments]:
            yield from _compare_pattern(part, where, limits)
    if sums.source.same_arithmetic:
        yield _compare_expectation(cells, axis)


def _compare_worst_slice(
    whole: FloatArray, axis: str, limits: NoiseLimits
) -> Iterator[NoiseFigure]:
    large = np.flatnonzero(whole[COUNT] >= _SMALLEST_SLICE)
    if large.size:
        worst = int(large[np.argmax(whole[LEAD, large] / whole[COUNT, large])])
        limit = _widen(limits.slice_error, whole[COUNT, worst], _SLICE_CHANCE)
        where = f"{axis}, position {worst}"
        yield NoiseFigure("slice error", _find_ratio(whole[:, worst]), limit, where)


def _compare_pattern(part: FloatArray, where: str, limits: NoiseLimits) -> Iterator[NoiseFigure]:
    part = part[:, part[COUNT] > 0]
    count = part[COUNT]
    slices = count.size
    if slices < _FEWEST_SLICES:
        return
    # Means of n independent signs are not 0 but about 1/sqrt(n); half the squares are each side's.
    chance = float((0.5 / count).sum())
    bias = _find_quotient(part[LEAN] / count, part[NOISE_LEAN] / count, chance)
    yield NoiseFigure("bias", bias, _widen(limits.bias, slices), where)
    mean = part[VALUE] / count
    variance = part[SQUARE] / count - mean**2
    varies = variance > 1e-12 * part[SQUARE] / count
    spread = np.sqrt(np.where(varies, variance, np.inf))
    drift = (part[DRIFT] - mean * part[LEAN]) / count / spread
    noise_drift = (part[NOISE_DRIFT] - mean * part[NOISE_LEAN]) / count / spread
    trend = _find_quotient(drift, noise_drift, chance)
    yield NoiseFigure("trend", trend, _widen(limits.trend, slices), where)


def _compare_expectation(cells: FloatArray, axis: str) -> NoiseFigure:
    # FP32 sums of a bit-identical model may still differ where nothing is rounded afterwards.
    base = cells[NOISE_SQUARE] + _BITS_LOST**2 * cells[SQUARE]
    differs = (cells[GAP_SQUARE] > 0).astype(np.float64)
    shares = np.divide(cells[GAP_SQUARE], base, out=differs, where=base > 0)
    return NoiseFigure("expected output", float(np.sqrt(shares.max())), EXPECTED_LIMIT, axis)


def _find_ratio(sums: FloatArray) -> float:
    lead = float(sums[LEAD] / sums[COUNT])
    return (1.0 + lead) / max(1.0 - lead, 1e-6)


def _find_quotient(errors: FloatArray, noises: FloatArray, chance: float) -> float:
    return math.sqrt((float((errors**2).sum()) + chance) / (float((noises**2).sum()) + chance))


def _widen(limit: float, count: float, chance: float = _CHANCE) -> float:
    return limit * math.exp(chance / math.sqrt(count))


def _keep_worst(figures: list[NoiseFigure]) -> Iterator[NoiseFigure]:
    """Keep, of each name, the figure that exceeds its limit most."""
    for name in dict.fromkeys(figure.name for figure in figures):
        same = [figure for figure in figures if figure.name == name]
        yield max(same, key=lambda figure: figure.value / figure.limit)
