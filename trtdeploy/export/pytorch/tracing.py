"""Export by PyTorch's older TorchScript exporter: for what dynamo cannot do, and for fake-quant."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import torch
from torch.utils._pytree import tree_map_only

from trtdeploy.export.pytorch.autocast import ignore_autocast
from trtdeploy.export.pytorch.code_place import is_framework_file
from trtdeploy.export.pytorch.flat_module import restore_state
from trtdeploy.export.pytorch.graph_file import ExportedGraph
from trtdeploy.export.pytorch.prepared import PreparedSource
from trtdeploy.export.pytorch.quiet import quiet_frameworks

NEWEST_OPSET = 20
"""The exporter is no longer developed; it knows no newer one."""

_DECISION = re.compile(
    r"Converting a tensor to a (Python (?:boolean|integer|float|number|index|list)|NumPy array)"
)


def export_by_tracing(prepared: PreparedSource, path: Path) -> ExportedGraph:
    """Write the ONNX file; what the trace fixed is in ``decisions``.

    Raises:
        Exception: Whatever PyTorch raises: this exporter cannot do it.
    """
    tensors = prepared.source.named_tensors()
    opset = min(prepared.opset, NEWEST_OPSET)
    source = prepared.source
    scripted = isinstance(source.module, torch.jit.ScriptModule)
    args = tree_map_only(
        torch.Tensor, torch.clone, source.args if scripted else (*tensors.values(),)
    )
    with (
        quiet_frameworks(descriptors=True) as caught,
        torch.no_grad(),
        ignore_autocast(),
        restore_state(source.module),
    ):
        torch.onnx.export(
            # tracing does not look through a wrapper into what is compiled already
            source.module if scripted else prepared.flat,
            args,
            str(path),
            dynamo=False,
            opset_version=opset,
            input_names=list(tensors),
            output_names=list(prepared.flat.output_names),
            dynamic_axes={name: dict(axes) for name, axes in prepared.axes.dynamic.items()},
            training=torch.onnx.TrainingMode.EVAL,
            verbose=True,  # prints the graph, which nobody sees, and writes lines of code into it
        )
    graph = ExportedGraph(f"TorchScript, PyTorch {torch.__version__}")
    graph.decisions = _find_fixed_decisions(caught)
    if opset < prepared.opset:
        graph.notes.append(f"the TorchScript exporter writes opset {NEWEST_OPSET} at most")
    return graph


def _find_fixed_decisions(caught: list[warnings.WarningMessage]) -> list[str]:
    """Return one sentence per decision that the trace fixed to what the example led to."""
    found = {}
    for warning in caught:
        match = _DECISION.search(str(warning.message))
        if match and not is_framework_file(warning.filename):
            place = f"{Path(warning.filename).name} line {warning.lineno}"
            found[place] = (
                f"the trace fixed a decision at {place} (a tensor became a {match[1]}): "
                "the file always does what the example led to"
            )
    return list(found.values())
