"""The figures of an output as people read them: the page and the terminal show this list."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from trtdeploy.parity.result import OutputComparison
from trtdeploy.report.number_text import (
    NOT_THERE,
    format_cosine,
    format_count,
    format_figure,
    format_share,
)


@dataclass(frozen=True)
class Figure:
    """One column of the tables.

    Attributes:
        heading: On the page, where a column that says nothing about any output is left out.
        render: Its text for one output; ``NOT_THERE`` where the output has no such figure.
        console: Heading in the terminal; empty leaves the figure out there, where 79 columns hold
            two names and a few figures.
    """

    heading: str
    render: Callable[[OutputComparison], str]
    console: str = ""


def _format_some(count: int) -> str:
    return format_count(count) if count else NOT_THERE


FIGURES: Final = (
    Figure("Verdict", lambda o: o.verdict.value),
    Figure("Relative L2", lambda o: format_figure(o.metrics.relative_l2)),
    Figure("Allowed", lambda o: format_figure(o.tolerance.relative_l2), console="allowed"),
    Figure("Noise floor", lambda o: format_figure(o.noise_floor), console="noise"),
    Figure("Balanced L2", lambda o: format_figure(o.metrics.balanced_relative_l2)),
    Figure("Max abs", lambda o: format_figure(o.metrics.max_abs_error)),
    Figure("Mean abs", lambda o: format_figure(o.metrics.mean_abs_error)),
    Figure("Largest value", lambda o: format_figure(o.metrics.reference_amax)),
    Figure("Cosine", lambda o: format_cosine(o.metrics.cosine)),
    Figure("SQNR dB", lambda o: format_figure(o.metrics.sqnr_db)),
    Figure("Close", lambda o: format_share(o.metrics.allclose_fraction)),
    Figure("Equal", lambda o: format_share(o.metrics.equal_fraction)),
    Figure("Top-1", lambda o: format_share(o.metrics.top1_agreement)),
    Figure("Top-5", lambda o: format_share(o.metrics.top5_agreement)),
    Figure("Flips", lambda o: _format_some(o.metrics.argmax_flips)),
    Figure("Largest gap", lambda o: format_figure(o.metrics.largest_flip_gap)),
    Figure("Ties", lambda o: _format_some(o.metrics.tied_rows)),
    Figure("Not finite in FP32", lambda o: _format_some(o.metrics.nonfinite_reference)),
    Figure("Not finite", lambda o: _format_some(o.metrics.nonfinite_candidate)),
)
