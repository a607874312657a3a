"""``trtdeploy pin``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from trtdeploy.cli import options
from trtdeploy.cli.output import OutputFormat, format_rows, format_table, sink

if TYPE_CHECKING:
    from trtdeploy.pinning.candidate import Candidate
    from trtdeploy.pinning.report import PinningReport

_MOST_ROWS = 20
_EXPLAINED_ROWS = 5
_NODE_WIDTH, _OPERATOR_WIDTH = 36, 13
_ELLIPSIS = "..."


def pin(
    model: options.ModelPath,
    profile: options.Profile = "",
    overrides: options.Overrides = None,
    shapes: options.Shapes = None,
    symbols: options.Symbols = None,
    values: options.Values = None,
    shape_json: options.ShapeJson = None,
    pins: options.Pins = None,
    data: options.RangeData = None,
    calibration_data: options.CalibrationData = None,
    calibration_method: options.CalibrationMethod = "",
    synthetic_calibration: options.SyntheticCalibration = False,
    target: options.PinTarget = "",
    metric: options.Metric = "",
    max_drop: options.MaxDrop = 0.0,
    samples: options.PinSamples = 8,
    most_runs: options.MostRuns = 300,
    output_file: options.PinFile = None,
    output: options.Output = OutputFormat.HUMAN,
) -> None:
    """Find the nodes that break a precision, and the fewest to pin.

    Quantizes (or narrows) one node at a time to see what each costs in the outputs, then searches
    the smallest set to keep in FP16 or FP32 that reaches the target. All on the CPU, emulated;
    every set that is reported was run.

    \b
    Examples:
      trtdeploy pin minilm.onnx -p orin-int8 --calib texts.npz --target sqnr=25
      trtdeploy pin det.onnx -p orin-fp16 --data pages/ --target max=1%
      trtdeploy pin resnet50.onnx -p orin-int8 --calib images/ --data val.npz
          --metric top1 --max-drop 0.005 -o resnet50.orin-int8.yaml

    \b
    Exit codes:
      0  the target is reached, with the pins that are printed (or without any)
      1  no set reaches it       2  wrong usage       3  a file cannot be used
    """
    from trtdeploy import api
    from trtdeploy.config.shape_syntax import parse_shape_table
    from trtdeploy.pinning.request import PinRequest

    options.require_profile(profile, "pin", "orin-int8")
    _require_folder(output_file)
    method = options.list_method_overrides(calibration_method)
    request = PinRequest(
        model=model,
        profile=profile,
        overrides=(*(overrides or []), *method),
        shapes=parse_shape_table(shapes or [], symbols or [], values or [], shape_json),
        pins=tuple(pins or []),
        data=data,
        calibration_data=tuple(calibration_data or []),
        synthetic_calibration=synthetic_calibration,
        target=target,
        metric=metric,
        max_drop=max_drop,
        samples=samples,
        most_runs=most_runs,
    )
    report = api.find_pins(request, progress=sink.progress)
    _print_report(report, output_file)


def _require_folder(output_file: Path | None) -> None:
    """Refuse a file that could not be written before the search, which takes minutes."""
    if output_file is not None and not output_file.parent.is_dir():
        from trtdeploy.core.errors import InputError

        raise InputError(
            f"{output_file} cannot be written: there is no folder {output_file.parent}",
            hint="Make the folder first, or choose another place with --output-file.",
        )


def _print_report(report: PinningReport, output_file: Path | None) -> None:
    from trtdeploy.core.errors import CheckFailedError
    from trtdeploy.core.files import save_text
    from trtdeploy.pinning.report import render_deploy_profile

    text = "\n\n".join(filter(None, (_render_table(report), _render_summary(report))))
    error = CheckFailedError(
        f"no set of pins reaches {report.target}", hint="Ask for less, or see the notes above."
    )
    sink.result(text, report.to_dict(), None if report.reached else error)
    if output_file is not None:
        written = render_deploy_profile(report, output_file.parent)
        save_text(output_file, written)
        sink.note(f"wrote {output_file}; use it with --profile {output_file}")


def _render_table(report: PinningReport) -> str:
    """Return the worst nodes and the pinned ones; nothing when no node was measured alone."""
    outcome = report.outcome
    if not outcome.alone:
        return ""
    pinned = set(outcome.pinned)
    shown = [c for place, c in enumerate(outcome.candidates) if place < _MOST_ROWS or c in pinned]
    rows = [("node", "op", "alone", "FLOPs", "pin")]
    rows += [_render_row(report, candidate) for candidate in shown]
    header, *lines = format_table(rows).split("\n")
    for place, candidate in enumerate(shown):
        reason = report.reasons.get(candidate.name, "")
        if reason and (place < _EXPLAINED_ROWS or candidate in pinned):
            lines[place] += f"\n  {reason}"
    left = len(outcome.candidates) - len(shown)
    more = [f"... and {left} more that cost less"] if left else []
    return "\n".join((header, *lines, *more))


def _render_row(report: PinningReport, candidate: Candidate) -> tuple[str, str, str, str, str]:
    alone = report.outcome.alone.get(candidate.name)
    cost = "-" if alone is None or alone.sqnr_db is None else f"{alone.sqnr_db:.1f} dB"
    others = len(candidate.nodes) - 1
    share = report.measure_share(candidate)
    return (
        _shorten(candidate.name, _NODE_WIDTH),
        candidate.op_type[:_OPERATOR_WIDTH] + (f" +{others}" if others else ""),
        cost,
        "" if share is None else f"{share:.1%}",
        report.precision if candidate in report.outcome.pinned else "",
    )


def _shorten(text: str, width: int) -> str:
    """Cut in the middle: names differ at both ends."""
    if len(text) <= width:
        return text
    head = (width - len(_ELLIPSIS)) // 3
    return text[:head] + _ELLIPSIS + text[head + len(_ELLIPSIS) - width :]


def _render_summary(report: PinningReport) -> str:
    from trtdeploy.pinning.report import render_precision_section

    outcome = report.outcome
    count = len(report.pins)
    everything = outcome.all_pinned
    rows: list[tuple[str, object]] = [
        ("target", report.target),
        ("plain", report.describe_score(outcome.plain)),
        (
            f"all {report.precision}",
            "" if everything is None else report.describe_score(everything),
        ),
        (f"{count} pinned", report.describe_score(outcome.hybrid) if count else ""),
        ("quantized", report.describe_shares()),
        ("compared", report.samples),
        ("runs", outcome.runs),
        ("notes", "\n".join((*report.notes, *outcome.notes))),
        ("pins", "none needed: the target is reached" if outcome.plain.reached else ""),
    ]
    text = format_rows(rows)
    if not count:
        return text
    listed = " \\\n".join(f"--pin {shlex.quote(pin)}" for pin in report.pins)
    section = "\n".join(render_precision_section(report))
    return f"{text}\n\nfor one build:\n{listed}\n\nor in a deploy profile:\n{section}"
