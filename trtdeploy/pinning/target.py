"""What a set of pins has to reach: a text of the user, or what parity allows the recipe."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trtdeploy.core.arrays import Array, Outputs
from trtdeploy.core.errors import UsageError
from trtdeploy.core.names import suggest_name
from trtdeploy.parity.accumulator import OutputAccumulator, find_atol
from trtdeploy.parity.result import OutputMetrics, Tolerance
from trtdeploy.parity.tolerance import OutputKind, ToleranceProvider, find_class_axis, find_kind
from trtdeploy.pinning.candidate import Score

SQNR, RELATIVE_L2, MAX, TOP1, PARITY = "sqnr", "rel-l2", "max", "top1", "parity"
_EXAMPLES = {SQNR: "sqnr=30", RELATIVE_L2: "rel-l2=0.01", MAX: "max=1%", TOP1: "top1=99%"}
_NO_TOLERANCE = Tolerance(0.0, 0.0, None, scaled=False, origin="a target of one figure")


@dataclass(frozen=True)
class Target:
    """One figure, and how far it may go; every output has to keep it.

    Attributes:
        kind: ``sqnr`` (dB, at least), ``rel-l2`` (at most), ``max`` (largest error as a share of
            the reference's amax, at most), ``top1`` (share of rows with the same arg max as FP32,
            at least), or ``parity``: what the recipe's tolerance allows.
        limit: In the unit of the figure; of ``parity``, 1.
    """

    kind: str
    limit: float

    def __str__(self) -> str:
        """Return what ``parse_target`` reads, or ``the recipe's parity tolerance``."""
        if self.kind == PARITY:
            return "the recipe's parity tolerance"
        return f"{self.kind}={self.limit:g}"

    def format_value(self, value: float | None) -> str:
        """Return a figure with its unit."""
        if value is None:
            return "no error" if self.kind == SQNR else "-"
        if self.kind == SQNR:
            return f"{value:.1f} dB"
        if self.kind == TOP1:
            return f"{value:.2%} top-1"
        if self.kind == MAX:
            return f"{value:.2%} of amax"
        return f"{value:.2e}" if self.kind == RELATIVE_L2 else f"{value:.2f} of the tolerance"


def parse_target(text: str) -> Target:
    """Read ``sqnr=30``, ``rel-l2=0.01``, ``max=1%`` or ``top1=99%``; empty means parity.

    Raises:
        UsageError: It is none of these.
    """
    if not text:
        return Target(PARITY, 1.0)
    kind, equals, number = text.partition("=")
    if kind not in _EXAMPLES or not equals:
        known = ", ".join(_EXAMPLES.values())
        raise UsageError(
            f"there is no target {text!r}; expected one like {known}",
            hint=suggest_name(kind, _EXAMPLES),
        )
    limit = _parse_number(number)
    if limit is None or limit <= 0 or (kind == TOP1 and limit > 1):
        raise UsageError(
            f"the target {text!r} needs a positive number, e.g. {_EXAMPLES[kind]}",
            hint="A percent sign divides by 100.",
        )
    return Target(kind, limit)


def _parse_number(text: str) -> float | None:
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        return None
    if not math.isfinite(number):
        return None
    return number / 100.0 if text.endswith("%") else number


class TargetJudge:
    """Adds up the outputs of a run, sample by sample, and says how far they are from a target.

    Args:
        target: What to reach.
        provide_tolerance: Of the recipe, for target ``parity``.
    """

    def __init__(self, target: Target, provide_tolerance: ToleranceProvider) -> None:
        self._target = target
        self._provide_tolerance = provide_tolerance
        self._tolerances: dict[str, Tolerance] = {}

    def score(self, runs: Iterable[tuple[Outputs, Outputs]]) -> Score:
        """Return the score of all runs together, each the reference's and candidate's outputs.

        Raises:
            UsageError: The target asks for an arg max, and no output has classes.
        """
        sums: dict[str, OutputAccumulator] = {}
        kinds: dict[str, OutputKind] = {}
        for reference, candidate in runs:
            for name, values in reference.items():
                if name not in sums:
                    kinds[name] = find_kind(name, values)
                    sums[name] = self._open(name, values, kinds[name])
                sums[name].add(values, candidate[name])
        metrics = {name: found.finish() for name, found in sums.items()}
        return self._conclude(metrics, kinds)

    def _open(self, name: str, values: Array, kind: OutputKind) -> OutputAccumulator:
        tolerance = _NO_TOLERANCE
        if self._target.kind == PARITY:
            tolerance = self._tolerances.setdefault(name, self._provide_tolerance(name, values))
        axis = find_class_axis(kind, values.shape) if self._target.kind == TOP1 else None
        return OutputAccumulator(tolerance, class_axis=axis)

    def _conclude(
        self, metrics: Mapping[str, OutputMetrics], kinds: Mapping[str, OutputKind]
    ) -> Score:
        judged: list[tuple[float, float | None]] = []
        for name, found in metrics.items():
            if kinds[name] is OutputKind.EXACT:
                if self._target.kind == PARITY and found.equal_fraction not in (None, 1.0):
                    judged.append((math.inf, None))
            elif found.nonfinite_only_candidate or found.candidate_shape is not None:
                judged.append((math.inf, None))
            elif self._target.kind != TOP1 or found.top1_agreement is not None:
                judged.append(self._measure_excess(found, self._tolerances.get(name)))
        if not judged and self._target.kind == TOP1:
            raise UsageError(
                "the target top1 needs an output with class scores, and the model has none",
                hint=f"Take another target, e.g. {_EXAMPLES[SQNR]}.",
            )
        floats = [name for name in metrics if kinds[name] is not OutputKind.EXACT]
        noise = {name: _measure_noise(metrics[name]) for name in floats}
        excess, value = max(judged, key=lambda pair: pair[0], default=(0.0, None))
        return Score(noise, excess, value)

    def _measure_excess(
        self, found: OutputMetrics, tolerance: Tolerance | None
    ) -> tuple[float, float | None]:
        """Return error over allowance, and the figure itself."""
        limit, error = self._target.limit, found.relative_l2 or 0.0
        if self._target.kind == SQNR:
            return error * 10.0 ** (limit / 20.0), found.sqnr_db
        if self._target.kind == RELATIVE_L2:
            return error / limit, error
        if self._target.kind == MAX:
            share = _divide(found.max_abs_error or 0.0, found.reference_amax or 0.0)
            return share / limit, share
        if self._target.kind == TOP1:
            agreement = 1.0 if found.top1_agreement is None else found.top1_agreement
            return _divide(1.0 - agreement, 1.0 - limit), agreement
        share = _use_tolerance(found, tolerance or _NO_TOLERANCE)
        return share, share


def _measure_noise(found: OutputMetrics) -> float:
    if found.nonfinite_only_candidate or found.candidate_shape is not None:
        return math.inf
    if found.relative_l2 is None:
        return math.inf if found.max_abs_error else 0.0
    return found.relative_l2**2


def _use_tolerance(found: OutputMetrics, tolerance: Tolerance) -> float:
    """Return how much of a tolerance is used up, by the figure that uses most of it."""
    used = [0.0]
    if tolerance.relative_l2 is not None:
        used.append((found.relative_l2 or 0.0) / tolerance.relative_l2)
    missed = 1.0 - (1.0 if found.allclose_fraction is None else found.allclose_fraction)
    if tolerance.close_fraction < 1.0:
        used.append(missed / (1.0 - tolerance.close_fraction))
    elif missed:
        # the largest error tells how far a tolerance for every element is missed
        atol = find_atol(tolerance, found.reference_amax or 0.0)
        largest = atol + tolerance.rtol * (found.reference_amax or 0.0)
        used.append(max(_divide(found.max_abs_error or 0.0, largest), 1.0 + missed))
    return max(used)


def _divide(part: float, whole: float) -> float:
    if part <= 0.0:
        return 0.0
    return part / whole if whole > 0 else math.inf
