"""The table for a terminal of 80 columns."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterator, Sequence

from trtdeploy.parity.result import ParityReport, TaskMetric, Verdict
from trtdeploy.report.comparison import Comparison, list_comparisons
from trtdeploy.report.document import BuildReport
from trtdeploy.report.figures import FIGURES
from trtdeploy.report.number_text import count_noun, format_figure, format_seconds, shorten
from trtdeploy.report.outcome import judge_report
from trtdeploy.report.page.build_view import describe_engine, describe_precision
from trtdeploy.report.page.error_bars import format_error
from trtdeploy.report.page.quantization_text import list_obstacle_texts, list_quantization_facts

_WIDTH = 79
_GAP = "  "
_MOST_ROWS = 60
_MOST_REASONS = 12
_MOST_OBSTACLES = 4
_WORDS = {Verdict.PASS: "pass", Verdict.SUSPECT: "SUSPECT", Verdict.FAIL: "FAIL"}
_NAME_COLUMNS = 2
_FACT_COLUMN = 16
_MOST_CHARACTERS = 1000
_PADDING = "\x00"
"""Second column of an ideograph while lines are broken; no text of a report holds it."""


def render_console(report: BuildReport) -> str:
    """Return verdict, facts, comparisons and findings as text, without a final line feed."""
    judgement = judge_report(report)
    blocks = [
        f"{judgement.outcome.value.upper()} ({shorten(judgement.label, 60)})",
        _wrap(judgement.headline),
        "",
        *_render_facts(report),
    ]
    if isinstance(report.parity, ParityReport):
        blocks += ["", *_render_parity(report.parity)]
    obstacles = list_obstacle_texts(report.quantization) if report.quantization else []
    if obstacles:
        blocks += ["", *(_wrap(text, hang=2) for text in obstacles[:_MOST_OBSTACLES])]
        blocks += _mention_rest(len(obstacles) - _MOST_OBSTACLES, "obstacle kind")
    findings = report.check.findings
    if findings:
        blocks.append("")
        blocks += [
            _wrap(f"{finding.severity.value.upper()} {finding.code}: {finding.message}", hang=2)
            for finding in findings[:_MOST_REASONS]
        ]
        blocks += _mention_rest(len(findings) - _MOST_REASONS, "finding")
    return "\n".join(blocks)


def render_parity_console(parity: ParityReport) -> str:
    """Return a parity check that stands alone: verdict, comparisons, reasons."""
    verdict = parity.verdict
    head = f"{verdict.value.upper()} ({shorten(parity.label, 60)})"
    facts = f"{parity.candidate} against {parity.reference}; inputs: {parity.describe_data()}"
    return "\n".join([head, _wrap(facts), "", *_render_parity(parity)])


def _render_facts(report: BuildReport) -> Iterator[str]:
    compiled, parity = report.compile, report.parity
    steps = ", ".join(
        f"{step.name} {format_seconds(step.seconds)}"
        for step in report.steps
        if step.status != "skipped"
    )
    rows = [
        ("model", report.source.file),
        ("profile", f"{report.profile.profile.name}: {report.profile.device.title}"),
        ("engine", describe_engine(report)),
        ("backend", f"{compiled.backend} {compiled.version}" if compiled else ""),
        ("precision", describe_precision(report)),
        *(list_quantization_facts(report.quantization) if report.quantization else ()),
        ("inputs", parity.describe_data() if isinstance(parity, ParityReport) else ""),
        ("steps", steps),
    ]
    for name, value in rows:
        if value:
            yield _wrap(value, hang=_FACT_COLUMN, first=f"{name:<{_FACT_COLUMN}}")


def _render_parity(parity: ParityReport) -> Iterator[str]:
    entries = list_comparisons(parity)
    shown = entries
    if len(entries) > _MOST_ROWS:
        shown = sorted(entries, key=lambda entry: -entry.severity)[:_MOST_ROWS]
    if shown:
        titles = (figure.console for figure in FIGURES if figure.console)
        header = ("point", "output", "rel. L2", *titles, "")
        yield from _render_table([header, *map(_make_row, shown)])
    yield from _mention_rest(len(entries) - len(shown), "comparison")
    for point in parity.points:
        if point.problem:
            place = shorten(parity.name_point(point), 40)
            yield _wrap(f"{_WORDS[Verdict.FAIL]} {place}: {point.problem}", hang=5)
    if parity.task_metric is not None:
        yield _wrap(_describe_task(parity.task_metric), hang=2)
    concerns = [entry for entry in shown if entry.severity]
    for entry in concerns[:_MOST_REASONS]:
        output = entry.output
        reasons = "; ".join(output.reasons) or output.verdict.value
        place = f"{shorten(output.name, 40)} at {shorten(entry.point_name, 30)}"
        yield _wrap(f"{_WORDS[output.verdict]} {place}: {reasons}", hang=5)
    yield from _mention_rest(len(concerns) - _MOST_REASONS, "reason")
    for origin in dict.fromkeys(entry.output.tolerance.origin for entry in shown):
        yield _wrap(f"tolerance from {origin}")
    yield from (_wrap(note) for note in parity.notes)


def _make_row(entry: Comparison) -> tuple[str, ...]:
    output = entry.output
    return (
        shorten(entry.point_name, _WIDTH),
        shorten(output.name, _WIDTH),
        format_error(output),
        *(figure.render(output) for figure in FIGURES if figure.console),
        _WORDS[output.verdict],
    )


def _describe_task(metric: TaskMetric) -> str:
    return (
        f"{_WORDS[metric.verdict]} task metric {metric.name}: reference "
        f"{format_figure(metric.reference)}, candidate {format_figure(metric.candidate)}, "
        f"largest drop allowed {format_figure(metric.max_drop)}"
    )


def _render_table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yield aligned rows; the two names share what the figures leave."""
    figures = [max(map(measure_width, column)) for column in list(zip(*rows, strict=True))[2:]]
    room = _WIDTH - sum(figures) - len(_GAP) * (len(figures) + 1)
    longest = [max(map(measure_width, column)) for column in list(zip(*rows, strict=True))[:2]]
    first = min(longest[0], room - min(longest[1], room // 2))
    second = min(longest[1], room - first)
    for row in rows:
        cells = [_fit(row[0], first), _fit(row[1], second)]
        cells += [
            " " * (width - measure_width(text)) + text
            for text, width in zip(row[_NAME_COLUMNS:-1], figures[:-1], strict=True)
        ]
        yield _GAP.join([*cells, row[-1]]).rstrip()


def _mention_rest(count: int, noun: str) -> list[str]:
    return [f"... and {count_noun(count, f'more {noun}')} in report.json"] if count > 0 else []


def _wrap(text: str, hang: int = 0, first: str = "") -> str:
    line = shorten(text, _MOST_CHARACTERS)
    padded = "".join(c + _PADDING if measure_width(c) > 1 else c for c in line)
    # A line may break between an ideograph and its padding, which is one column too many.
    width = _WIDTH - (padded != line)
    filled = textwrap.fill(padded, width, initial_indent=first, subsequent_indent=" " * hang)
    return filled.replace(_PADDING, "")


def _fit(text: str, width: int) -> str:
    """Return ``text`` on exactly ``width`` columns of a terminal."""
    for limit in range(width, 0, -1):
        line = shorten(text, limit)
        free = width - measure_width(line)
        if free >= 0:
            return line + " " * free
    return " " * width


def measure_width(text: str) -> int:
    """Return the columns that a terminal gives to ``text``; ideographs take two."""
    return sum(map(_measure_character, text))


def _measure_character(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1
