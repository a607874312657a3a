"""The smallest and largest sizes of rules: tried in PyTorch and in the file, and taken back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

from trtdeploy.backends.onnxruntime.session import OnnxRuntimeSession
from trtdeploy.core.errors import TrtdeployError
from trtdeploy.core.tensors import SizeRule
from trtdeploy.export.proof import FileProof, Reference

_MARGIN = 10
"""Times the tolerance: another way through the model's code differs by far more."""
_LARGEST_TRIED = 4096
"""Attention over more tokens takes a CPU minutes; such a limit is believed."""


def fit_rules(
    rules: Mapping[str, SizeRule], path: Path | None, reference: Reference, rtol: float
) -> dict[str, SizeRule]:
    """Return the rules without the ends at which the source fails, or the file is not like it.

    A file that is right at no size beside the example's keeps its rule: that is for the proof to
    refuse, not for a rule to hide.

    Args:
        rules: By symbol, those of batches aside; each symbol is varied alone.
        path: The file; None tries the source alone, and leaves out a size of 1: many models treat
            it in another way, and a file does what the example led to.
        reference: The source, and the example's size of every symbol.
        rtol: Largest accepted error, before a margin that only another way of computing exceeds.
    """
    fitted = {}
    # a row of half the width may pass for one in a batch of two, and in no other
    batches = {
        symbol: size + 1 for symbol, size in reference.example.items() if symbol not in rules
    }
    another = replace(reference, example={**reference.example, **batches})
    with OnnxRuntimeSession(path, optimize=False, quiet=True) if path else nullcontext() as session:
        for symbol, rule in rules.items():
            size = reference.example[symbol]
            is_like = partial(_holds, session, reference, rtol, symbol)
            loose = (
                _drop_min(rule, partial(_holds, session, another, rtol, symbol))
                if session
                else rule
            )
            runs = fit_rule(loose, size, partial(_holds, None, reference, rtol, symbol))
            if session is None:
                fitted[symbol] = replace(runs, min=max(runs.min, min(size, 2)))
                continue
            like = fit_rule(runs, size, is_like)
            beside = (size + rule.multiple_of, size - rule.multiple_of)
            is_baked = like != runs and not any(runs.accepts(n) and is_like(n) for n in beside)
            fitted[symbol] = runs if is_baked else like
    return fitted


def _holds(
    session: OnnxRuntimeSession | None, reference: Reference, rtol: float, symbol: str, size: int
) -> bool:
    if reference.make_sample is None:
        return True
    try:
        sample = reference.make_sample({**reference.example, symbol: size})
        return session is None or FileProof(session, reference, _MARGIN * rtol).agrees(sample)
    except TrtdeployError:
        return False


def _drop_min(rule: SizeRule, is_like: Callable[[int], bool]) -> SizeRule:
    """Return the rule without its smallest size where the next smaller one does no worse.

    Exporters state conditions that they need to tell sizes apart, and that the model has not.
    """
    below = rule.nearest(1) - rule.multiple_of
    return replace(rule, min=rule.multiple_of) if below > 0 and is_like(below) else rule


def fit_rule(rule: SizeRule, size: int, holds_at: Callable[[int], bool]) -> SizeRule:
    """Return the rule without the sizes at its ends that do not hold.

    Sizes between the example's and one that holds are taken to hold, too.

    Args:
        rule: What is believed so far.
        size: The example's, which holds.
        holds_at: Tells whether a size does.
    """
    step = rule.multiple_of
    lowest = -(-rule.min // step) * step
    found = _find_end(size, lowest, step, holds_at)
    if found != lowest:
        rule = replace(rule, min=found)
    if rule.max is not None and rule.max <= _LARGEST_TRIED:
        highest = rule.max // step * step
        found = _find_end(size, highest, step, holds_at)
        if found != highest:
            rule = replace(rule, max=found)
    return rule


def _find_end(size: int, end: int, step: int, holds_at: Callable[[int], bool]) -> int:
    """Return the size nearest to the end that holds; most ends hold, or nearly."""
    if end == size or holds_at(end):
        return end
    sign = step if end > size else -step
    good, bad, jump = 0, (end - size) // sign, 1
    while bad - jump > 0:
        if holds_at(size + sign * (bad - jump)):
            good = bad - jump
            break
        bad, jump = bad - jump, jump * 2
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if holds_at(size + sign * middle) else (good, middle)
    return size + sign * good
