"""``trtdeploy check``."""

from __future__ import annotations

import typer

from trtdeploy.cli import options
from trtdeploy.cli.output import OutputFormat, sink


def check(
    model: options.ModelPath,
    profile: options.Profile,
    overrides: options.Overrides = None,
    shapes: options.Shapes = None,
    symbols: options.Symbols = None,
    values: options.Values = None,
    shape_json: options.ShapeJson = None,
    output: options.Output = OutputFormat.HUMAN,
) -> None:
    """Find every blocker and hazard; build nothing.

    Asks the installed TensorRT parser when there is one, else a shipped table.

    \b
    Example:
      trtdeploy check yolov8n.onnx --profile orin-fp16

    \b
    Exit codes:
      0  no blocker       1  blockers found
      2  wrong usage      3  the file or profile cannot be read
    """
    from trtdeploy import api
    from trtdeploy.config.shape_syntax import parse_shape_table
    from trtdeploy.preflight.text import render_report

    table = parse_shape_table(shapes or [], symbols or [], values or [], shape_json)
    report = api.check(model, profile, overrides=overrides or [], shapes=table)
    sink.data(render_report(report), report.to_dict())
    if report.blockers:
        raise typer.Exit(1)
