"""``report.html``: one file without scripts, fonts or anything else from a network."""

from __future__ import annotations

from collections import Counter
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from trtdeploy.core.units import format_bytes
from trtdeploy.parity.result import ParityReport
from trtdeploy.preflight.finding import Severity
from trtdeploy.report import number_text
from trtdeploy.report.document import BuildReport
from trtdeploy.report.outcome import judge_report
from trtdeploy.report.page import error_bars, error_histogram
from trtdeploy.report.page.build_view import (
    describe_engine,
    describe_precision,
    list_shapes,
    list_steps,
)
from trtdeploy.report.page.listing import limit_entries
from trtdeploy.report.page.parity_view import build_parity_view
from trtdeploy.report.page.precision_map import build_precision_map, describe_map
from trtdeploy.report.page.quantization_text import describe_method
from trtdeploy.report.page.quantization_view import build_quantization_view

if TYPE_CHECKING:
    from jinja2 import Environment

_TEMPLATES = Path(__file__).with_name("templates")
_TEMPLATE = "report.html.j2"

_FILTERS = {
    "bytes": format_bytes,
    "compact": number_text.format_compact,
    "cosine": number_text.format_cosine,
    "count": number_text.format_count,
    "error": error_bars.format_error,
    "error_line": error_bars.describe_error,
    "figure": number_text.format_figure,
    "method": describe_method,
    "noun": number_text.count_noun,
    "seconds": number_text.format_seconds,
    "share": number_text.format_share,
    "short": number_text.shorten,
    "sizes": partial(number_text.format_sizes, times=number_text.TIMES),
}


def render_html(report: BuildReport) -> str:
    """Return the page: everything of a report, readable without trtdeploy and offline."""
    parity = report.parity if isinstance(report.parity, ParityReport) else None
    quantization = report.quantization
    precision_map = build_precision_map(report.precision)
    return (
        _make_environment()
        .get_template(_TEMPLATE)
        .render(
            report=report,
            judgement=judge_report(report),
            parity=parity,
            parity_view=build_parity_view(parity) if parity else None,
            engine_text=describe_engine(report),
            precision_text=describe_precision(report),
            steps=list_steps(report),
            shapes=list_shapes(report),
            warnings=Counter(report.compile.warnings if report.compile else ()).most_common(),
            quantization=quantization,
            quantized=build_quantization_view(quantization) if quantization else None,
            map=precision_map,
            map_text=describe_map(precision_map),
            findings={s.value: report.check.select(s) for s in Severity},
            bars_width=error_bars.WIDTH,
            bars_row=error_bars.ROW,
            histogram_size=(error_histogram.WIDTH, error_histogram.HEIGHT),
        )
    )


@cache
def _make_environment() -> Environment:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(_FILTERS)
    environment.filters["limit"] = limit_entries
    return environment
