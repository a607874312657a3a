"""Options that several commands share, spelled once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from trtdeploy.cli.output import OutputFormat


def complete_profile(incomplete: str) -> list[str]:
    """Return the shipped deploy profiles that start with what was typed."""
    from trtdeploy.config.loading import list_deploy_profiles

    return [name for name in list_deploy_profiles() if name.startswith(incomplete)]


Profile = Annotated[
    str,
    typer.Option(
        "--profile",
        "-p",
        help="Deploy profile: a name from 'trtdeploy profiles', or a YAML file.",
        autocompletion=complete_profile,
    ),
]
Overrides = Annotated[
    Optional[list[str]],  # noqa: UP045 - typer reads the annotation at run time on Python 3.10
    typer.Option("--set", metavar="KEY=VALUE", help="Override one field of the profile."),
]
Shapes = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--shape",
        metavar="NAME:MIN:OPT:MAX",
        help="Sizes of an input, e.g. images:1x3x320x320:4x3x640x640:8x3x1280x1280.",
    ),
]
Symbols = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--symbol",
        metavar="SYMBOL=MIN:OPT:MAX",
        help="Sizes of a named dimension in every input that has it, e.g. batch=1:4:8.",
    ),
]
Values = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--value",
        metavar="NAME:MIN:OPT:MAX",
        help="Contents of an input whose values decide shapes, e.g. size:8,8:20,33:64,64.",
    ),
]
ShapeJson = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--shape-json",
        metavar="FILE_OR_TEXT",
        help='Sizes as JSON: {"input": {"min": [...], "opt": [...], "max": [...]}}.',
    ),
]
Output = Annotated[OutputFormat, typer.Option("--output", help="Format of the result on stdout.")]
ModelPath = Annotated[
    Path, typer.Argument(metavar="MODEL", readable=False, help="An ONNX file.", show_default=False)
]
