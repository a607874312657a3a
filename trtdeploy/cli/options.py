"""Options that several commands share, spelled once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from trtdeploy.cli.output import OutputFormat, sink


def complete_profile(incomplete: str) -> list[str]:
    """Return the shipped deploy profiles that start with what was typed."""
    from trtdeploy.config.loading import list_deploy_profiles

    return [name for name in list_deploy_profiles() if name.startswith(incomplete)]


def complete_calibration_method(incomplete: str) -> list[str]:
    """Return the calibration methods that start with what was typed."""
    from trtdeploy.config.calibration import CALIBRATION_METHODS

    return [name for name in CALIBRATION_METHODS if name.startswith(incomplete)]


def _choose_format(value: OutputFormat) -> OutputFormat:
    sink.format = value
    return value


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
Output = Annotated[
    OutputFormat,
    typer.Option(
        "--output",
        callback=_choose_format,
        is_eager=True,
        help="Format of the result on stdout.",
    ),
]
"""The sink heeds it; a command only declares it."""
ModelPath = Annotated[
    Path, typer.Argument(metavar="MODEL", readable=False, help="An ONNX file.", show_default=False)
]
OutputDir = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--output-dir", "-o", help="Default: MODEL.PROFILE in this folder."),
]
Pins = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--pin",
        metavar="PATTERN",
        help="Keep these nodes FP32; also 'op:Softmax', 'fp16:/head/*', 'int8:stem'.",
    ),
]
RangeData = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--data", metavar="PATH", help="Samples: npz, npy, a folder of them, images."),
]
CalibrationData = Annotated[
    Optional[list[Path]],  # noqa: UP045
    typer.Option(
        "--calib",
        metavar="PATH",
        help="Samples to calibrate INT8/FP8 with (as --data), or an earlier calibration.json; "
        "may be given several times.",
    ),
]
CalibrationMethod = Annotated[
    str,
    typer.Option(
        "--calib-method",
        metavar="NAME",
        help="minmax, percentile, entropy or mse.",
        autocompletion=complete_calibration_method,
    ),
]
SyntheticCalibration = Annotated[
    bool,
    typer.Option(
        "--synthetic-calib",
        help="Calibrate with made-up inputs: to try a build, never to ship one.",
    ),
]
PrepareOnly = Annotated[
    bool, typer.Option("--prepare-only", help="Stop before compiling; that is a success then.")
]
DebugPrecision = Annotated[
    bool, typer.Option("--debug-precision", help="Detailed verbosity, TensorRT's DEBUG flag.")
]
NoParity = Annotated[bool, typer.Option("--no-parity", help="Do not compare with the FP32 model.")]
Rebuild = Annotated[
    bool, typer.Option("--rebuild", help="Build even if this very result is there already.")
]
BuildInput = Annotated[
    Path, typer.Argument(metavar="MODEL", readable=False, help="ONNX file, or prepared folder.")
]
Candidate = Annotated[
    Path, typer.Argument(metavar="CANDIDATE", readable=False, help="Output folder, or typed ONNX.")
]
Reference = Annotated[
    Path, typer.Option("--reference", "-r", metavar="ONNX", help="The FP32 model.")
]
Match = Annotated[
    str, typer.Option("--match", metavar="order|rows", help="'rows': rows in any order.")
]
PinFile = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(
        "--output-file", "-o", metavar="YAML", help="Write a deploy profile with the pins."
    ),
]
Metric = Annotated[
    str, typer.Option("--metric", metavar="NAME", help="top1, miou, or module:function.")
]
MaxDrop = Annotated[float, typer.Option("--max-drop", help="How far the metric may fall.")]
PinTarget = Annotated[
    str,
    typer.Option(
        "--target",
        metavar="FIGURE=LIMIT",
        help="sqnr=30 (dB), rel-l2=0.01, max=1% (of amax) or top1=99% (agreement with FP32), for "
        "every output; default: the recipe's parity tolerance.",
    ),
]
PinSamples = Annotated[int, typer.Option("--samples", help="Samples to compare outputs on.")]
MostRuns = Annotated[int, typer.Option("--max-runs", help="Runs of the search at most.")]
Strict = Annotated[bool, typer.Option("--strict", help="Fail what is suspect, too.")]
JunitFile = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--junit-file", metavar="PATH", help="Write a JUnit file for CI."),
]


def require_profile(profile: str, command: str, example: str) -> None:
    """Raise ``UsageError`` when a command that needs ``--profile`` was given none."""
    if not profile:
        from trtdeploy.core.errors import UsageError

        raise UsageError(
            f"{command} needs --profile", hint=f"'trtdeploy profiles' lists them, e.g. {example}."
        )


def list_method_overrides(calibration_method: str) -> tuple[str, ...]:
    """Return ``--calib-method`` as ``--set`` texts.

    Raises:
        UsageError: There is no such method.
    """
    from trtdeploy.config.calibration import CALIBRATION_METHODS
    from trtdeploy.core.errors import UsageError

    if not calibration_method:
        return ()
    if calibration_method not in CALIBRATION_METHODS:
        raise UsageError(
            f"--calib-method {calibration_method!r}: expected one of "
            + ", ".join(CALIBRATION_METHODS)
        )
    return (f"calibration.method={calibration_method}",)
