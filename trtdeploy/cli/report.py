"""``trtdeploy report``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from trtdeploy.cli import options
from trtdeploy.cli.output import OutputFormat, sink

if TYPE_CHECKING:
    from trtdeploy.report.document import BuildReport


def report(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", readable=False, help="An output folder, or a report.json."
        ),
    ],
    html: Annotated[
        bool, typer.Option("--html", help="Write report.html into the folder.")
    ] = False,
    junit: Annotated[bool, typer.Option("--junit", help="Write junit.xml there too.")] = False,
    html_file: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--html-file", metavar="PATH", help="Write the page there instead."),
    ] = None,
    junit_file: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--junit-file", metavar="PATH", help="Write the JUnit file there instead."),
    ] = None,
    strict: options.Strict = False,
    output: options.Output = OutputFormat.HUMAN,
) -> None:
    """Show the report of a build, and write it as a page or for CI.

    Everything comes from report.json; nothing is built or run.

    \b
    Examples:
      trtdeploy report yolov8n.rtx4090-fp16 --html --junit
      trtdeploy report yolov8n.rtx4090-fp16 --junit-file results/junit.xml

    \b
    Exit codes:
      0  the gate is passed, or parity was not run
      1  the gate failed: an output is outside its tolerance, or there are blockers
      2  wrong usage      3  there is no report, or it cannot be read
    """
    from trtdeploy.report.console import render_console
    from trtdeploy.report.junit import render_junit
    from trtdeploy.report.loading import find_report_file, load_report
    from trtdeploy.report.outcome import is_accepted
    from trtdeploy.report.page.html import render_html
    from trtdeploy.report.writing import HTML_NAME, JUNIT_NAME, save_file

    path = find_report_file(folder)
    loaded = load_report(path)
    page = html_file or (path.parent / HTML_NAME if html else None)
    results = junit_file or (path.parent / JUNIT_NAME if junit else None)
    if page is not None:
        save_file(page, render_html(loaded))
    if results is not None:
        save_file(results, render_junit(loaded))
    written = {"html": page, "junit": results}
    accepted = is_accepted(loaded, strict=strict)
    files = {"report": path, **written}
    sink.data(render_console(loaded), _summarize(loaded, files, accepted=accepted))
    for place in filter(None, written.values()):
        sink.note(f"wrote {place}")
    if not accepted:
        raise typer.Exit(1)


def _summarize(
    report: BuildReport, files: Mapping[str, Path | None], *, accepted: bool
) -> dict[str, Any]:
    """Return verdict, label, parity and the files by kind, None for what was not asked for."""
    from trtdeploy.report.json_document import drop_infinities, dump_document
    from trtdeploy.report.outcome import judge_report

    judgement = judge_report(report)
    return {
        "outcome": judgement.outcome.value,
        "gate_failed": not accepted,
        "headline": judgement.headline,
        "label": judgement.label,
        "status": report.status,
        "parity": drop_infinities(dump_document(report.parity)),
        **{kind: str(place) if place else None for kind, place in files.items()},
    }
