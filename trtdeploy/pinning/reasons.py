"""Why a layer loses so much in 8 bits: what its input and its weight look like."""

from __future__ import annotations

import math

import numpy as np

from trtdeploy.calibration.density import Floats, MagnitudeDensity
from trtdeploy.calibration.histogram import MagnitudeHistogram, find_bins
from trtdeploy.calibration.percentile import find_percentile
from trtdeploy.calibration.squared_error import list_levels
from trtdeploy.calibration.summary import Calibration
from trtdeploy.core.number_formats import INT8, QuantizedType
from trtdeploy.graph.index import build_index
from trtdeploy.graph.model import OnnxModel
from trtdeploy.precision.quantization.plan import QuantizationPlan, QuantizedWeight
from trtdeploy.precision.quantization.weights import measure_weight_amax

_SHOWN_PERCENTILE = 99.9
_OUTLIER_RATIO = 4.0
"""From this ratio of the largest to that percentile on, a few values take most of the levels."""
_CLIPPED = 0.9
_MUCH_LOST = 0.4
"""Clipped at its 99.9th percentile, 1 % of a normal distribution rounds to 0, of a Laplace 3 %."""


class ReasonFinder:
    """Explains layers of one quantized model.

    Args:
        model: From ``prepare_for_quantization``.
        plan: Which layers read what.
        calibration: Ranges and amax.
    """

    def __init__(self, model: OnnxModel, plan: QuantizationPlan, calibration: Calibration) -> None:
        self._model = model
        self._initializers = build_index(model).main.initializers
        self._plan = plan
        self._calibration = calibration

    def explain(self, node: str) -> str:
        """Return which operand loses most, and what is unusual about it."""
        operands = [o for o in self._plan.operands if o.node == node]
        found = [self._explain_input(o.group, o.kind) for o in operands]
        found += [self._explain_weight(w) for w in self._plan.weights if w.node == node]
        return min(found, key=lambda pair: pair[0], default=(0.0, ""))[1]

    def _explain_input(self, value: str, kind: QuantizedType) -> tuple[float, str]:
        histogram = self._calibration.statistics.histograms[value]
        amax = self._calibration.amax[value]
        if histogram.largest == 0.0:
            return math.inf, "input is always 0"
        density = MagnitudeDensity(histogram)
        levels = list_levels(kind) / kind.max * amax
        sqnr, lost = _measure_sqnr(density, levels), _measure_lost(histogram, float(levels[1]) / 2)
        usual = find_percentile(histogram, _SHOWN_PERCENTILE)
        parts = [f"largest {histogram.largest:.3g}"]
        if histogram.largest >= _OUTLIER_RATIO * usual:
            parts.append(f"{_SHOWN_PERCENTILE:g} % below {usual:.2g}")
        if amax < _CLIPPED * histogram.largest:
            parts.append(f"clipped at {amax:.2g}")
        if lost >= _MUCH_LOST:
            parts.append(f"{lost:.0%} rounds to 0")
        # a few large values can carry all the power: then the ratio looks good, and most is lost
        rank = -math.inf if lost >= _MUCH_LOST else sqnr
        return rank, f"input {sqnr:.0f} dB: {', '.join(parts)}"

    def _explain_weight(self, weight: QuantizedWeight) -> tuple[float, str]:
        """Return what uniform rounding costs: a step squared over 12 for every element."""
        tensor = self._initializers[weight.tensor]
        if weight.kind is not INT8:
            return math.inf, ""
        amax = measure_weight_amax(self._model, tensor, weight.axis).astype(np.float64)
        values = self._model.iterate_values(tensor)
        power = sum(float((piece.astype(np.float64) ** 2).sum()) for piece in values)
        count = math.prod(tensor.dims)
        steps = amax / INT8.max
        noise = count / max(steps.size, 1) * float((steps**2).sum()) / 12.0
        if not noise or not power:
            return math.inf, ""
        sqnr = 10.0 * math.log10(power / noise)
        rms = math.sqrt(power / count)
        text = f"weight {sqnr:.0f} dB: amax {amax.max():.2g}, rms {rms:.2g}"
        return sqnr, text + (", one scale for all channels" if weight.axis is None else "")


def _measure_sqnr(density: MagnitudeDensity, levels: Floats) -> float:
    """Return signal over expected rounding and clipping noise, in dB."""
    halfway = np.concatenate(([0.0], (levels[:-1] + levels[1:]) / 2, [np.inf]))
    below = density.measure_moments(halfway)
    zeroth, first, second = map(np.diff, (below.zeroth, below.first, below.second))
    noise = float((second - 2 * levels * first + levels * levels * zeroth).sum())
    power = float(density.total.second[0])
    return 10.0 * math.log10(power / noise) if noise > 0 else math.inf


def _measure_lost(histogram: MagnitudeHistogram, limit: float) -> float:
    """Return the share of the values other than 0 that are below ``limit``."""
    zeros = int(histogram.counts[0])
    below = int(histogram.counts[: int(find_bins(limit))].sum()) - zeros
    return max(below, 0) / max(histogram.count - zeros, 1)
