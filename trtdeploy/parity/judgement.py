"""From the figures of one output to a verdict, with a sentence for everything it rests on."""

from __future__ import annotations

from dataclasses import replace

from trtdeploy.core.tensors import format_shape
from trtdeploy.parity.counts import ExactCount
from trtdeploy.parity.noise_figures import EMULATED_LIMITS, NoiseLimits
from trtdeploy.parity.result import (
    NoiseComparison,
    NoiseFigure,
    OutputComparison,
    OutputMetrics,
    Tolerance,
    Verdict,
    worst_verdict,
)
from trtdeploy.parity.tolerance import RAISE_FACTOR

_BALANCED_FACTOR = 10.0
"""A slice alone may be that many times worse than the whole: small values lose more to rounding."""
_LARGEST_BALANCED = 0.5
_LEAST_EXPLAINED_FRACTION = 0.95
"""Share of close elements below which not even errors of rounding's size are let pass."""
_CHANCE_CHANGES = 3
Finding = tuple[Verdict, str]

_NOISE_TEXTS = {
    "error": "its error is {value:.1f} times what rounding does here (limit {limit:.1f})",
    "segment error": "on {where} its error is {value:.1f} times what rounding does (limit "
    "{limit:.1f})",
    "slice error": "at {where} its error is {value:.1f} times what rounding does (limit "
    "{limit:.1f})",
    "bias": "its slices along {where} are shifted to one side {value:.1f} times as much as by "
    "rounding (limit {limit:.1f})",
    "trend": "its error along {where} grows with the value {value:.1f} times as much as rounding "
    "does (limit {limit:.1f})",
    "expected output": "it must agree in every bit with the same recipe applied to the reference, "
    "and is off by {value:.2g} of the rounding error along {where}",
}


def judge_output(
    metrics: OutputMetrics,
    tolerance: Tolerance,
    noise: NoiseComparison | None = None,
    limits: NoiseLimits = EMULATED_LIMITS,
) -> list[Finding]:
    """Return everything that speaks for or against one output, with a sentence each.

    Args:
        metrics: Figures of the output.
        tolerance: What is allowed.
        noise: What rounding alone does; None when it was not measured.
        limits: Whose ``fail_factor`` parts a failure from a suspicion.
    """
    findings = _note_types(metrics)
    if metrics.candidate_shape is not None:
        shapes = format_shape(metrics.shape), format_shape(metrics.candidate_shape)
        text = f"shapes differ: {shapes[0]} in the reference, {shapes[1]} in the candidate"
        return [*findings, (Verdict.FAIL, text)]
    findings += _judge_finiteness(metrics)
    findings += _judge_tolerance(metrics, tolerance, noise)
    findings += _note_ranking(metrics)
    if noise is not None:
        findings += _judge_noise(noise, limits)
    return findings


def judge_equality(metrics: OutputMetrics, noise: ExactCount) -> list[Finding]:
    """Return whether integers, booleans and text agree.

    An index that comes from an arg max inside the model may tip over by rounding. Where honest
    outcomes do that too, twice their number (and three more, for chance) is let pass with a note.
    """
    if metrics.equal_fraction is None or metrics.equal_fraction == 1.0:
        return []
    changed = max(round((1.0 - metrics.equal_fraction) * metrics.elements), 1)
    text = f"values that are not equal: {changed} of {metrics.elements}"
    if metrics.max_abs_error is not None:
        text += f", by up to {metrics.max_abs_error:.15g}"
    share = 1.0 - (noise.fraction if noise.fraction is not None else 1.0)
    if share > 0 and changed <= 2 * share * metrics.elements + _CHANCE_CHANGES:
        return [(Verdict.PASS, f"{text}; rounding alone changes {share:.2%} of them")]
    return [(Verdict.FAIL, text)]


def with_finding(comparison: OutputComparison, verdict: Verdict, text: str) -> OutputComparison:
    """Return a comparison with one more reason; its verdict can only get worse."""
    worst = worst_verdict([comparison.verdict, verdict])
    is_first = verdict is worst and verdict is not Verdict.PASS
    reasons = (text, *comparison.reasons) if is_first else (*comparison.reasons, text)
    return replace(comparison, verdict=worst, reasons=reasons)


def conclude(
    name: str,
    findings: list[Finding],
    metrics: OutputMetrics,
    tolerance: Tolerance,
    noise: NoiseComparison | None,
) -> OutputComparison:
    """Return a comparison with the worst verdict of its findings, whose reasons come first."""
    verdict = worst_verdict([verdict for verdict, _ in findings] or [Verdict.PASS])
    order = list(reversed(Verdict))
    ranked = sorted(findings, key=lambda finding: order.index(finding[0]))
    reasons = tuple(text for _, text in ranked)
    floor = None if noise is None else noise.relative_l2
    return OutputComparison(name, verdict, reasons, metrics, tolerance, floor, noise)


def _note_types(metrics: OutputMetrics) -> list[Finding]:
    before, after = metrics.reference_dtype, metrics.candidate_dtype
    if before == after:
        return []
    return [(Verdict.PASS, f"the element type changed from {before} to {after}")]


def _judge_finiteness(metrics: OutputMetrics) -> list[Finding]:
    findings = []
    if metrics.nonfinite_only_candidate:
        count = f"{metrics.nonfinite_only_candidate} of {metrics.elements} elements"
        text = f"NaN or infinite in the candidate alone: {count}"
        findings.append((Verdict.FAIL, text))
    if metrics.nonfinite_reference:
        text = (
            "the FP32 baseline itself is NaN or infinite in "
            f"{metrics.nonfinite_reference} of {metrics.elements} elements "
            f"({metrics.nonfinite_agreeing} the same in the candidate): nothing can be proven "
            "about them"
        )
        findings.append((Verdict.FAIL, text))
    return findings


def _judge_tolerance(
    metrics: OutputMetrics, tolerance: Tolerance, noise: NoiseComparison | None
) -> list[Finding]:
    texts = []
    close, error = metrics.allclose_fraction, metrics.relative_l2
    explained = noise is not None and _explains(noise, error)
    if close is not None and close < tolerance.close_fraction:
        text = (
            f"{1.0 - close:.2%} of the elements are outside the tolerance "
            f"({_format_allowance(tolerance)}), the worst by {metrics.max_abs_error:.3g}"
        )
        within = tolerance.relative_l2 is not None and (error or 0.0) <= tolerance.relative_l2
        if explained and within and close >= _LEAST_EXPLAINED_FRACTION:
            return [(Verdict.PASS, f"{text}; rounding alone makes errors of that size")]
        texts.append(text)
    if tolerance.relative_l2 is not None:
        if error is not None and error > tolerance.relative_l2:
            texts.append(f"relative L2 error {error:.2e} exceeds {tolerance.relative_l2:.0e}")
        # Slices are better judged by the noise floor; probabilities near 0 need not be right.
        balanced = metrics.balanced_relative_l2 if tolerance.scaled and noise is None else None
        limit = min(tolerance.relative_l2 * _BALANCED_FACTOR, _LARGEST_BALANCED)
        if balanced is not None and balanced > limit:
            texts.append(f"relative L2 error of its slices {balanced:.2e} exceeds {limit:.0e}")
    if texts and noise is not None and explained:
        texts.append(
            f"rounding alone explains it (noise floor {noise.relative_l2:.1e}): the recipe does "
            "not suit this model; keep nodes in FP32 or choose a wider type"
        )
    return [(Verdict.FAIL, text) for text in texts]


def _format_allowance(tolerance: Tolerance) -> str:
    scale = " of the largest magnitude" if tolerance.scaled else ""
    relative = f" + {tolerance.rtol:g} relative" if tolerance.rtol else ""
    return f"{tolerance.atol:g}{scale}{relative}; {tolerance.origin}"


def _explains(noise: NoiseComparison, error: float | None) -> bool:
    """True when no figure is beyond its limit and the error is no more than twice the floor."""
    within = all(figure.value <= figure.limit for figure in noise.figures)
    return bool(noise.figures) and within and (error or 0.0) <= RAISE_FACTOR * noise.relative_l2


def _note_ranking(metrics: OutputMetrics) -> list[Finding]:
    findings = []
    if metrics.argmax_flips:
        findings.append(
            f"rows whose arg max changes: {metrics.argmax_flips}; the reference prefers its own by "
            f"up to {metrics.largest_flip_gap:.3g}"
        )
    if metrics.tied_rows:
        findings.append(
            f"rows whose arg max changes between values tied within the tolerance: "
            f"{metrics.tied_rows} (gap up to {metrics.largest_tie_gap:.3g}); counted as equal"
        )
    return [(Verdict.PASS, text) for text in findings]


def _judge_noise(noise: NoiseComparison, limits: NoiseLimits) -> list[Finding]:
    beyond = [figure for figure in noise.figures if figure.value > figure.limit]
    return [
        (
            Verdict.SUSPECT if noise.is_estimate else _judge_figure(figure, limits),
            f"worse than rounding explains: {_format_figure(figure)}; rounding is {noise.source}",
        )
        for figure in beyond
    ]


def _judge_figure(figure: NoiseFigure, limits: NoiseLimits) -> Verdict:
    certain = figure.name == "expected output"
    clear = figure.value > limits.fail_factor * figure.limit
    return Verdict.FAIL if certain or clear else Verdict.SUSPECT


def _format_figure(figure: NoiseFigure) -> str:
    text = _NOISE_TEXTS[figure.name]
    return text.format(value=figure.value, limit=figure.limit, where=figure.where)
