"""The application: its commands and what ``trtdeploy --help`` says."""

from __future__ import annotations

from typing import Annotated

import typer

from trtdeploy.cli.build import build
from trtdeploy.cli.check import check
from trtdeploy.cli.doctor import doctor
from trtdeploy.cli.export import export
from trtdeploy.cli.inspect import inspect
from trtdeploy.cli.models import models
from trtdeploy.cli.parity import parity
from trtdeploy.cli.pin import pin
from trtdeploy.cli.profiles import profiles
from trtdeploy.cli.report import report

app = typer.Typer(
    name="trtdeploy",
    no_args_is_help=True,
    rich_markup_mode=None,  # rich costs more start-up time than everything else together
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from trtdeploy import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def describe(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Version.")
    ] = False,
) -> None:
    """Take a trained model to NVIDIA GPUs, and prove what was built.

    \b
    Start here:
      trtdeploy doctor                                    what can I build here?
      trtdeploy export yolov8n.pt -o yolov8n.onnx         from a trained model to ONNX
      trtdeploy check yolov8n.onnx --profile orin-fp16    only look for problems
      trtdeploy build yolov8n.onnx --profile orin-fp16    the whole way
    """


for command in (export, build, check, parity, pin, report, inspect, profiles, doctor):
    app.command()(command)
app.add_typer(models)
