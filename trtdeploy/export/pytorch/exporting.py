"""From a module with an example to a proven ONNX file."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from trtdeploy.core.steps import StepRunner
from trtdeploy.core.tensors import SizeRule
from trtdeploy.export.file_output import open_output_file
from trtdeploy.export.fp32_regions import find_pins
from trtdeploy.export.output_shapes import declare_outputs
from trtdeploy.export.proof import ProofSample
from trtdeploy.export.pytorch.axes import require_several_sizes
from trtdeploy.export.pytorch.exporter_choice import export_graph
from trtdeploy.export.pytorch.failure import FixedSizesError
from trtdeploy.export.pytorch.graph_file import ExportedGraph
from trtdeploy.export.pytorch.graph_names import (
    declare_inputs,
    name_nodes_by_module,
    rename_weights,
    strip_origins,
)
from trtdeploy.export.pytorch.guards import tighten_rules
from trtdeploy.export.pytorch.prepared import PreparedSource, prepare_source
from trtdeploy.export.pytorch.proving import (
    choose_rtol,
    make_reference,
    make_samples,
    prove_samples,
)
from trtdeploy.export.pytorch.size_ends import fit_rules
from trtdeploy.export.pytorch.size_search import shapes_at
from trtdeploy.export.pytorch.source import TorchSource
from trtdeploy.export.request import ExportRequest
from trtdeploy.export.result import ExportProof, ExportResult
from trtdeploy.graph.export_facts import write_export_facts
from trtdeploy.graph.model import OnnxModel
from trtdeploy.graph.saving import save_model

_SMALLEST_FP16 = 2.0**-24
"""Smallest positive number of FP16, a subnormal (IEEE 754 binary16)."""


def export_torch(source: TorchSource, request: ExportRequest, steps: StepRunner) -> ExportResult:
    """Write and prove the ONNX file of a PyTorch model.

    Raises:
        InputError: The model cannot be exported as asked; names module and line.
        CheckFailedError: The written file does not compute what the model computes. It is removed.
        UsageError: The request does not fit the model.
    """
    with steps.run("prepare") as step:
        prepared = prepare_source(source, request)
        step.detail = ", ".join(f"{s}={n}" for s, n in prepared.sizes.items()) or "fixed sizes"
    with (
        open_output_file(request.output) as path,
        tempfile.TemporaryDirectory(prefix=".raw.", dir=path.parent.parent) as raw,
    ):
        with steps.run("export") as step:
            graph, model = _export(prepared, Path(raw) / "raw.onnx")
            step.detail = f"{graph.exporter}: {len(model.graph.node)} nodes, opset {model.opset}"
        with steps.run("prove") as step:
            samples = make_samples(prepared)
            facts = _finish_model(prepared, graph, model, samples)
            save_model(model, path)
            proof = prove_samples(prepared, graph, path, samples, choose_rtol(prepared, model))
            step.detail = _summarize(proof)
        result = _describe(prepared, graph, model, proof, facts, samples)
        write_export_facts(model, prepared.stated_rules, facts, _to_record(result))
        save_model(model, path)
    return result


def _export(prepared: PreparedSource, path: Path) -> tuple[ExportedGraph, OnnxModel]:
    """Write the graph and find its rules; axes that nobody asked for and that cannot vary stay."""
    while True:
        try:
            graph, model = export_graph(prepared, path)
            rules = _tighten_rules(prepared, graph)
            rules |= _try_rules(prepared, rules, path, choose_rtol(prepared, model))
            require_several_sizes(rules.values())
        except FixedSizesError as error:
            if (
                not prepared.has_default_axes
                or not error.reasons.keys() <= prepared.axes.rules.keys()
            ):
                raise
            prepared.fix_sizes(error.reasons)
        else:
            prepared.axes.rules = rules
            return graph, model


def _tighten_rules(prepared: PreparedSource, graph: ExportedGraph) -> dict[str, SizeRule]:
    tensors = prepared.source.named_tensors()
    rules = dict(prepared.axes.rules)
    for symbol, limit in graph.limits.items():
        rules[symbol] = replace(rules[symbol], max=min(limit, rules[symbol].max or limit))
    return tighten_rules(
        rules,
        graph.guards,
        prepared.sizes,
        lambda sizes: shapes_at(tensors, prepared.axes.dynamic, sizes),
    )


def _try_rules(
    prepared: PreparedSource, rules: Mapping[str, SizeRule], path: Path, rtol: float
) -> dict[str, SizeRule]:
    rules = {s: rule for s, rule in rules.items() if s not in prepared.batches}
    file = path if prepared.request.proof.enabled else None
    return fit_rules(rules, file, make_reference(prepared), rtol) if rules else {}


def _finish_model(
    prepared: PreparedSource, graph: ExportedGraph, model: OnnxModel, samples: list[ProofSample]
) -> tuple[str, ...]:
    """Name nodes, weights and sizes; return the pins."""
    name_nodes_by_module(model)
    pins, notes = find_pins(model, prepared.regions)
    graph.notes += notes
    strip_origins(model)
    rename_weights(model)
    declare_inputs(model, prepared.axes.dynamic)
    observed = {
        name: [(s.sizes, s.expected[name].shape) for s in samples] for name in samples[0].expected
    }
    declare_outputs(model, prepared.axes.rules.values(), observed)
    write_export_facts(model, prepared.stated_rules, pins)
    return pins


def _summarize(proof: ExportProof) -> str:
    if proof.status != "proven":
        return f"skipped: {proof.reason}"
    return f"{len(proof.points)} points, largest relative error {proof.max_error:.1e}"


def _describe(
    prepared: PreparedSource,
    graph: ExportedGraph,
    model: OnnxModel,
    proof: ExportProof,
    pins: tuple[str, ...],
    samples: list[ProofSample],
) -> ExportResult:
    notes = [*prepared.notes, *graph.notes, *_note_tiny_outputs(samples)]
    if proof.batch_independent is False:
        notes.append(
            "the samples of a batch influence each other, in the model itself: do not batch "
            "requests of different users"
        )
    return ExportResult(
        path=prepared.request.output,
        source=prepared.request.source,
        exporter=graph.exporter,
        opset=model.opset,
        opset_reason=prepared.opset_reason,
        inputs=model.input_specs(),
        outputs=model.output_specs(),
        proof=proof,
        size_rules=prepared.stated_rules,
        pins=pins,
        notes=tuple(notes),
        changes=tuple(model.changes),
    )


def _note_tiny_outputs(samples: list[ProofSample]) -> list[str]:
    """Warn of outputs that FP16 rounds to 0, as deep models with random weights give."""
    notes = []
    for name, array in samples[0].expected.items():
        largest = float(np.abs(array).max(initial=0.0)) if array.dtype.kind == "f" else 1.0
        if 0 < largest < _SMALLEST_FP16:
            notes.append(
                f"output {name!r} is at most {largest:.1e}, which FP16 rounds to 0: random weights "
                "do that, and no FP16 engine can then pass parity"
            )
    return notes


def _to_record(result: ExportResult) -> dict[str, Any]:
    kept = ("source", "exporter", "opset", "opset_reason", "proof", "notes")
    return {key: value for key, value in result.to_dict().items() if key in kept}
