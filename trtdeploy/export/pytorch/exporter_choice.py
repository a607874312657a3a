"""Dynamo first; TorchScript where it is asked for, needed, or the only one that works."""

from __future__ import annotations

from pathlib import Path

import torch

from trtdeploy.core.errors import InputError, TrtdeployError
from trtdeploy.export.pytorch.dynamo import export_by_dynamo
from trtdeploy.export.pytorch.failure import explain_export_failure
from trtdeploy.export.pytorch.graph_file import ExportedGraph
from trtdeploy.export.pytorch.prepared import PreparedSource
from trtdeploy.export.pytorch.tracing import export_by_tracing
from trtdeploy.graph.loading import load_model
from trtdeploy.graph.model import OnnxModel
from trtdeploy.graph.passes.lower_opset import FROM_OPSET, TO_OPSET, LowerOpsetPass


def export_graph(prepared: PreparedSource, path: Path) -> tuple[ExportedGraph, OnnxModel]:
    """Write the graph of a model by the exporter that fits; return it as loaded.

    Raises:
        InputError: No exporter can do it, or the model cannot be exported as asked.
    """
    exporter, module = prepared.request.exporter, prepared.source.module
    if exporter == "torchscript" or isinstance(module, torch.jit.ScriptModule):
        return _trace(prepared, path)
    if exporter == "auto" and prepared.source.program is None and _has_fake_quantization(module):
        graph, model = _trace(prepared, path)
        graph.notes.insert(0, "TorchScript exporter: dynamo has no form of fake-quantization")
        return graph, model
    try:
        return _use_dynamo(prepared, path)
    except TrtdeployError:
        raise
    except Exception as error:
        failure = explain_export_failure(error, prepared.flat, "dynamo", "torchscript")
        if exporter == "dynamo" or prepared.source.program is not None:
            raise failure from error
        return _fall_back(prepared, path, failure)


def _use_dynamo(prepared: PreparedSource, path: Path) -> tuple[ExportedGraph, OnnxModel]:
    graph = export_by_dynamo(prepared, path)
    model = load_model(path)
    if prepared.opset < model.opset == FROM_OPSET and prepared.opset == TO_OPSET:
        LowerOpsetPass()(model)
    if model.opset != prepared.opset:
        raise InputError(
            f"opset {prepared.opset} was asked for, and the dynamo exporter wrote {model.opset}",
            hint="Choose --opset 17 to 23, or --exporter torchscript for older ones.",
        )
    return graph, model


def _fall_back(
    prepared: PreparedSource, path: Path, failure: InputError
) -> tuple[ExportedGraph, OnnxModel]:
    try:
        graph, model = _trace(prepared, path)
    except InputError:
        # the first failure says more about the model
        hint = (
            "The TorchScript exporter fails too. Replace what is named, or export the part before."
        )
        raise InputError(failure.message, hint=hint) from None
    if graph.decisions:
        raise InputError(
            f"{failure.message}. The TorchScript exporter would work, but {graph.decisions[0]}",
            hint="Change that line; or take it with --exporter torchscript where every input goes "
            "the same way.",
        )
    graph.fallback = failure.message
    graph.notes.insert(0, f"TorchScript exporter, since {failure.message}")
    return graph, model


def _trace(prepared: PreparedSource, path: Path) -> tuple[ExportedGraph, OnnxModel]:
    try:
        graph = export_by_tracing(prepared, path)
    except TrtdeployError:
        raise
    except Exception as error:
        raise explain_export_failure(error, prepared.flat, "TorchScript", "dynamo") from error
    graph.notes += graph.decisions
    return graph, load_model(path)


def _has_fake_quantization(module: torch.nn.Module) -> bool:
    """Tell whether a module quantizes as PyTorch's own do, or says that it does as NVIDIA's do."""
    return any(
        hasattr(child, "fake_quant") or "FakeQuantize" in base.__name__
        for child in module.modules()
        for base in type(child).mro()
    )
