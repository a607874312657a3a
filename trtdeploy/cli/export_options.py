"""Options of ``trtdeploy export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

Texts = Optional[list[str]]  # noqa: UP045 - typer reads the annotation at run time on Python 3.10

Source = Annotated[str, typer.Argument(metavar="SOURCE", help="See below.")]
Target = Annotated[
    Path, typer.Option("-o", "--onnx", metavar="FILE", help="To write.", show_default=False)
]
Inputs = Annotated[
    Texts,
    typer.Option(
        "--input",
        metavar="NAME:DTYPE:SHAPE",
        help="An example input, e.g. ids:int64:2x16:0..999; the range at its end is optional.",
    ),
]
Dynamic = Annotated[
    Texts,
    typer.Option(
        "--dynamic",
        metavar="NAME:AXIS=SYMBOL,...",
        help="Sizes that vary; equal symbols are equal sizes. 'NAME:' alone fixes all.",
    ),
]
Multiples = Annotated[
    Texts,
    typer.Option("--multiple", metavar="SYMBOL=STEP", help="The model takes multiples only."),
]
Weights = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--weights", metavar="FILE", help="Trained weights: .pt or .safetensors."),
]
Config = Annotated[
    Texts, typer.Option("--config", metavar="KEY=VALUE,...", help="Settings of the model.")
]
Opset = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(
        "--opset", min=7, help="Default: what --profile needs, else 20; an .onnx keeps its own."
    ),
]
Exporter = Annotated[
    str, typer.Option("--exporter", metavar="auto|dynamo|torchscript", help="Of PyTorch.")
]
Download = Annotated[
    bool, typer.Option("--download", help="Allow fetching trained weights by name.")
]
NoProof = Annotated[
    bool, typer.Option("--no-proof", help="Do not run the file against its source.")
]
ProveAt = Annotated[
    Texts, typer.Option("--prove-at", metavar="SYMBOL=SIZE,SIZE", help="Sizes of the proof.")
]
ProofTolerance = Annotated[
    float,
    typer.Option(
        "--proof-tolerance", help="Largest error, relative to the largest values around it."
    ),
]
