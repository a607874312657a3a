"""``trtdeploy export``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from trtdeploy.cli import options
from trtdeploy.cli.output import OutputFormat, format_rows, sink

if TYPE_CHECKING:
    from trtdeploy.core.tensors import TensorSpec
    from trtdeploy.export.result import ExportResult

Texts = Optional[list[str]]  # noqa: UP045 - typer reads the annotation at run time on Python 3.10


def export(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="See below.")],
    target: Annotated[
        Path,
        typer.Option("-o", "--onnx", metavar="FILE", help="To write.", show_default=False),
    ],
    inputs: Annotated[
        Texts,
        typer.Option(
            "--input",
            metavar="NAME:DTYPE:SHAPE",
            help="An example input, e.g. ids:int64:2x16:0..999; the range at its end is optional.",
        ),
    ] = None,
    dynamic: Annotated[
        Texts,
        typer.Option(
            "--dynamic",
            metavar="NAME:AXIS=SYMBOL,...",
            help="Sizes that vary; equal symbols are equal sizes. 'NAME:' alone fixes all.",
        ),
    ] = None,
    multiples: Annotated[
        Texts,
        typer.Option("--multiple", metavar="SYMBOL=STEP", help="The model takes multiples only."),
    ] = None,
    weights: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--weights", metavar="FILE", help="Trained weights: .pt or .safetensors."),
    ] = None,
    config: Annotated[
        Texts,
        typer.Option("--config", metavar="KEY=VALUE,...", help="Settings of the model."),
    ] = None,
    profile: options.Profile = "",
    opset: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--opset", min=7, help="Default: what --profile needs, else 20."),
    ] = None,
    exporter: Annotated[
        str, typer.Option("--exporter", metavar="auto|dynamo|torchscript", help="Of PyTorch.")
    ] = "auto",
    download: Annotated[
        bool, typer.Option("--download", help="Allow fetching trained weights by name.")
    ] = False,
    no_proof: Annotated[
        bool, typer.Option("--no-proof", help="Do not run the file against its source.")
    ] = False,
    prove_at: Annotated[
        Texts, typer.Option("--prove-at", metavar="SYMBOL=SIZE,SIZE", help="Sizes of the proof.")
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option("--proof-tolerance", help="Largest error, relative to an output's largest."),
    ] = 1e-4,
    output: options.Output = OutputFormat.HUMAN,
) -> None:
    """Export a trained model to ONNX, with sizes that vary, and prove the file against it.

    SOURCE is one of

    \b
      module:callable             a torch.nn.Module, its class, or a function that makes one
      torchvision:resnet50        timm:vit_tiny_patch16_224
      transformers:FOLDER         a folder with config.json and weights, or a name with --download
      yolov8n.pt, yolov8n.yaml    Ultralytics models, if you have that package (AGPL-3.0)
      model.pt2, traced.pt        exported programs, TorchScript files
      model.onnx                  an ONNX file, to be cleaned

    PyTorch comes with: pip install 'trtdeploy[export]'. The file's metadata says which sizes the
    model takes and which nodes must stay FP32; 'trtdeploy build' heeds both.

    \b
    Examples:
      trtdeploy export yolov8n.pt -o yolov8n.onnx
      trtdeploy export torchvision:resnet50 --weights resnet50.pth -o resnet50.onnx
      trtdeploy export net.py:make --input x:float32:1x3x224x224 --dynamic x:0=batch -o net.onnx
      trtdeploy export transformers:./minilm --profile orin-fp16 -o minilm.onnx

    \b
    Exit codes:
      0  written and proven        1  the file differs from its source; it is not written
      2  wrong usage               3  the model cannot be exported; module and line are named
      4  a package is missing
    """
    sink.format = output
    from trtdeploy import api
    from trtdeploy.core.errors import UsageError
    from trtdeploy.export import arguments
    from trtdeploy.export.request import EXPORTERS, ExportRequest, ProofOptions

    chosen = next((name for name in EXPORTERS if name == exporter), None)
    if chosen is None:
        raise UsageError(f"--exporter {exporter!r}: expected one of {', '.join(EXPORTERS)}")
    request = ExportRequest(
        source=source,
        output=target,
        inputs=tuple(map(arguments.parse_input_argument, inputs or [])),
        dynamic=None if dynamic is None else arguments.parse_dynamic_arguments(dynamic),
        multiples=arguments.parse_multiple_arguments(multiples or []),
        opset=opset,
        profile=profile,
        weights=weights,
        config=tuple(config or []),
        exporter=chosen,
        download=download,
        proof=ProofOptions(
            enabled=not no_proof,
            rtol=tolerance,
            sizes=arguments.parse_size_arguments(prove_at or []),
        ),
    )
    result = api.export_onnx(request, progress=sink.progress)
    sink.data(render_result(result), result.to_dict())


def render_result(result: ExportResult) -> str:
    """Return the result for people."""
    return format_rows(
        [
            ("model", result.path),
            ("exporter", f"{result.exporter}, opset {result.opset} ({result.opset_reason})"),
            ("inputs", _render_tensors(result.inputs)),
            ("outputs", _render_tensors(result.outputs)),
            ("sizes", "\n".join(f"{r.symbol}: {r}" for r in result.size_rules)),
            ("keep FP32", "\n".join(result.pins)),
            ("proof", _render_proof(result)),
            ("changed", "\n".join(result.changes)),
            ("note", "\n".join(result.notes)),
            ("next", f"trtdeploy build {result.path} --profile NAME"),
        ]
    )


def _render_tensors(tensors: tuple[TensorSpec, ...]) -> str:
    from trtdeploy.core.tensors import format_shape

    return "\n".join(f"{t.name}: {t.dtype.label} {format_shape(t.shape)}" for t in tensors)


def _render_proof(result: ExportResult) -> str:
    proof = result.proof
    if proof.status != "proven":
        return f"skipped: {proof.reason}"
    points = "; ".join(
        ", ".join(f"{symbol} {size}" for symbol, size in point.sizes.items()) or "fixed sizes"
        for point in proof.points
    )
    lines = [f"equals {proof.reference} within {proof.max_error:.1e} at {points}"]
    if proof.batch_independent:
        lines.append("samples of a batch do not influence each other")
    return "\n".join(lines)
