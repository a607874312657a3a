"""``trtdeploy export``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtdeploy.cli import export_options, options
from trtdeploy.cli.output import OutputFormat, format_rows, sink

if TYPE_CHECKING:
    from trtdeploy.core.tensors import TensorSpec
    from trtdeploy.export.result import ExportResult


def export(
    source: export_options.Source,
    target: export_options.Target,
    inputs: export_options.Inputs = None,
    dynamic: export_options.Dynamic = None,
    multiples: export_options.Multiples = None,
    weights: export_options.Weights = None,
    config: export_options.Config = None,
    profile: options.Profile = "",
    opset: export_options.Opset = None,
    exporter: export_options.Exporter = "auto",
    download: export_options.Download = False,
    no_proof: export_options.NoProof = False,
    prove_at: export_options.ProveAt = None,
    tolerance: export_options.ProofTolerance = 1e-4,
    output: options.Output = OutputFormat.HUMAN,
) -> None:
    """Export a trained model to ONNX, with sizes that vary, and prove the file against it.

    SOURCE is one of

    \b
      module:callable           a torch.nn.Module, its class, or what makes one
      torchvision:resnet50      timm:vit_tiny_patch16_224
      transformers:FOLDER       config.json and weights; a name with --download
      yolov8n.pt, yolov8n.yaml  Ultralytics, if you have that package (AGPL-3.0)
      model.pt2, traced.pt      exported programs, TorchScript files
      model.onnx                an ONNX file, to be cleaned

    PyTorch comes with: pip install 'trtdeploy[export]'. module:callable and .pt2 run code of
    their own: export those of people you trust. The file's metadata says which sizes the
    model takes and which nodes must stay FP32; 'trtdeploy build' heeds both.

    \b
    Examples:
      trtdeploy export yolov8n.pt -o yolov8n.onnx
      trtdeploy export torchvision:resnet50 --weights r50.pth -o resnet50.onnx
      trtdeploy export net.py:make --input x:float32:1x3x224x224 \\
          --dynamic x:0=batch -o net.onnx
      trtdeploy export transformers:./minilm --profile orin-fp16 -o minilm.onnx

    \b
    Exit codes:
      0  written and proven      1  the file differs from its source: not written
      2  wrong usage             3  it cannot be exported; module and line named
      4  a package is missing
    """
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
