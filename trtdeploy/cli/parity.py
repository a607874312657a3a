"""``trtdeploy parity``."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from trtdeploy.cli import options
from trtdeploy.cli.output import OutputFormat, sink

if TYPE_CHECKING:
    from trtdeploy.parity.checking import Observer, ParityProgress
    from trtdeploy.parity.result import ParityReport


def parity(
    candidate: options.Candidate,
    reference: options.Reference,
    profile: options.Profile = "",
    overrides: options.Overrides = None,
    shapes: options.Shapes = None,
    symbols: options.Symbols = None,
    values: options.Values = None,
    shape_json: options.ShapeJson = None,
    data: options.RangeData = None,
    match: options.Match = "order",
    metric: options.Metric = "",
    max_drop: options.MaxDrop = 0.0,
    strict: options.Strict = False,
    junit_file: options.JunitFile = None,
    output: options.Output = OutputFormat.HUMAN,
) -> None:
    """Compare a candidate with its FP32 model.

    The release gate: every output at every corner of every optimization profile, odd batch sizes,
    batch independence. An engine runs where its GPU is; elsewhere its typed model is emulated on
    the CPU, rounding and overflow included, and the result says so.

    \b
    Examples:
      trtdeploy parity yolov8n.rtx4090-fp16 --reference yolov8n.onnx
      trtdeploy parity mine.onnx -r fp32.onnx -p rtx4090-fp16 --data samples.npz
      trtdeploy parity folder -r fp32.onnx --data val.npz --metric top1

    \b
    Exit codes:
      0  the same within rounding       1  it differs, or could not be run
      2  wrong usage                    3  a file cannot be used
    """
    from trtdeploy import api
    from trtdeploy.config.shape_syntax import parse_shape_table
    from trtdeploy.core.errors import UsageError

    if match not in ("order", "rows"):
        raise UsageError(f"--match is 'order' or 'rows', not {match!r}")
    request = api.request_parity(
        candidate,
        reference,
        profile=profile,
        overrides=overrides or [],
        shapes=parse_shape_table(shapes or [], symbols or [], values or [], shape_json),
    )
    request = replace(
        request, data=data, match_rows=match == "rows", metric=metric, max_drop=max_drop
    )
    report = api.check_parity(request, progress=_make_observer())
    _print_report(report, junit_file)
    if not report.is_accepted(strict=strict):
        raise typer.Exit(1)


def _print_report(report: ParityReport, junit_file: Path | None) -> None:
    from trtdeploy.report.console import render_parity_console
    from trtdeploy.report.json_document import clean_value, dump_document
    from trtdeploy.report.junit import render_parity_junit
    from trtdeploy.report.writing import save_file

    shown = clean_value(type(report), report)
    sink.data(render_parity_console(shown), dump_document(shown))
    if junit_file is not None:
        save_file(junit_file, render_parity_junit(shown))
        sink.note(f"wrote {junit_file}")


def _make_observer() -> Observer:
    from trtdeploy.core.steps import ProgressEvent

    started = time.monotonic()

    def draw(progress: ParityProgress) -> None:
        place = f"{progress.point.name} ({progress.position} of {progress.total})"
        detail = f"{place}, {progress.samples} samples"
        sink.progress(ProgressEvent("parity", detail, time.monotonic() - started))

    return draw
