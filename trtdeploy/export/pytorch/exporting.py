"""From a module with an example to a proven ONNX file."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from trtdeploy.core.errors import CheckFailedError, InputError
from trtdeploy.core.tensors import SizeRule
from trtdeploy.export.file_output import open_output_file
from trtdeploy.export.fp32_regions import Fp32Region, find_pins
from trtdeploy.export.graph_edit import (
    declare_inputs,
    name_nodes_by_module,
    rename_weights,
    strip_origins,
)
from trtdeploy.export.opset_choice import choose_opset
from trtdeploy.export.output_shapes import declare_outputs
from trtdeploy.export.proof import QUANTIZED_RTOL, Reference, Sample, prove_file
from trtdeploy.export.proof_sizes import choose_proof_points
from trtdeploy.export.pytorch.autocast import find_fp32_regions, find_program_regions
from trtdeploy.export.pytorch.axes import (
    decide_axes,
    fix_axes,
    format_dynamic,
    require_several_sizes,
)
from trtdeploy.export.pytorch.eval_mode import enforce_eval_mode
from trtdeploy.export.pytorch.example import add_example_inputs, make_feeds
from trtdeploy.export.pytorch.exporter_choice import export_graph
from trtdeploy.export.pytorch.failure import FixedSizesError
from trtdeploy.export.pytorch.flat_module import FlatModule
from trtdeploy.export.pytorch.graph_file import ExportedGraph, GraphRequest
from trtdeploy.export.pytorch.guards import tighten_rules
from trtdeploy.export.pytorch.quiet import quiet_frameworks
from trtdeploy.export.pytorch.rounding import run_rounding_otherwise
from trtdeploy.export.pytorch.size_ends import fit_rules
from trtdeploy.export.pytorch.size_search import example_sizes, find_batch_symbols, shapes_at
from trtdeploy.export.pytorch.source import TorchSource
from trtdeploy.export.pytorch.widening import widen_module
from trtdeploy.export.pytorch.wrappers import bake_parametrizations
from trtdeploy.export.request import ExportRequest
from trtdeploy.export.result import ExportProof, ExportResult
from trtdeploy.graph.export_facts import write_export_facts
from trtdeploy.graph.model import OnnxModel, walk_nodes
from trtdeploy.graph.saving import save_model
from trtdeploy.parity.runner import Feeds, Outputs
from trtdeploy.pipeline.steps import StepRunner

_SMALLEST_FP16 = 2.0**-24
"""Smallest positive number of FP16, a subnormal (IEEE 754 binary16)."""


@dataclass
class _Prepared:
    """A source that runs, and all that was decided about it before the export."""

    source: TorchSource
    flat: FlatModule
    request: ExportRequest
    opset: int
    opset_reason: str
    dynamic: dict[str, dict[int, str]]
    rules: dict[str, SizeRule]
    regions: list[Fp32Region]
    notes: list[str] = field(default_factory=list)

    @property
    def sizes(self) -> dict[str, int]:
        """The example's size of every symbol."""
        return example_sizes(self.source.named_tensors(), self.dynamic)

    @property
    def batches(self) -> frozenset[str]:
        """Symbols of a batch, which the proof tries at 1."""
        return find_batch_symbols(self.source.named_tensors(), self.dynamic)

    @property
    def has_default_axes(self) -> bool:
        """Whether nobody said which axes vary."""
        return self.request.dynamic is None and self.source.program is None

    @property
    def stated_rules(self) -> tuple[SizeRule, ...]:
        """Rules that say more than "any size"."""
        return tuple(rule for rule in self.rules.values() if rule != SizeRule(rule.symbol))


def export_torch(source: TorchSource, request: ExportRequest, steps: StepRunner) -> ExportResult:
    """Write and prove the ONNX file of a PyTorch model.

    Raises:
        InputError: The model cannot be exported as asked; names module and line.
        CheckFailedError: The written file does not compute what the model computes. It is removed.
        UsageError: The request does not fit the model.
    """
    with steps.run("prepare") as step:
        prepared = _prepare(source, request)
        step.detail = ", ".join(f"{s}={n}" for s, n in prepared.sizes.items()) or "fixed sizes"
    with (
        open_output_file(request.output) as path,
        tempfile.TemporaryDirectory(prefix=".raw.", dir=path.parent.parent) as raw,
    ):
        with steps.run("export") as step:
            graph, model = _export(prepared, Path(raw) / "raw.onnx")
            step.detail = f"{graph.exporter}: {len(model.graph.node)} nodes, opset {model.opset}"
        with steps.run("prove") as step:
            samples = _make_samples(prepared)
            facts = _finish_model(prepared, graph, model, samples)
            save_model(model, path)
            with _name_default_axes(prepared), _blame_fallback(graph):
                proof = _prove(prepared, path, samples, _choose_rtol(prepared, model))
            step.detail = _summarize(proof)
        result = _describe(prepared, graph, model, proof, facts, samples)
        write_export_facts(model, prepared.stated_rules, facts, _to_record(result))
        save_model(model, path)
    return result


def _prepare(source: TorchSource, request: ExportRequest) -> _Prepared:
    opset, reason = choose_opset(request.opset, request.profile)
    add_example_inputs(source, request.inputs, request.proof.seed)
    notes = enforce_eval_mode(source.module) if source.program is None else []
    _freeze_observers(source.module)
    bake_parametrizations(source.module)
    flat = FlatModule(source, widened=widen_module(source))
    with quiet_frameworks():
        regions = find_fp32_regions(flat, lambda: flat.call(source.named_tensors()))
        if source.program is not None:
            regions = find_program_regions(source.program)
        decided = decide_axes(source, flat, request)
    constants = [f"{name}={value!r}" for name, value in source.constants().items()]
    if constants:
        notes.append(f"fixed in the file, being no tensors: {', '.join(constants)}")
    return _Prepared(
        source, flat, request, opset, reason, decided.dynamic, decided.rules, regions,
        [*source.notes, *notes, *decided.notes, *flat.notes],
    )  # fmt: skip


def _freeze_observers(module: torch.nn.Module) -> None:
    """Keep fake-quantization from learning new scales while it is exported and proven."""
    for child in module.modules():
        disable = getattr(child, "disable_observer", None)
        if callable(disable):
            disable()


def _export(prepared: _Prepared, path: Path) -> tuple[ExportedGraph, OnnxModel]:
    """Write the graph and find its rules; axes that nobody asked for and that cannot vary stay."""
    while True:
        try:
            graph, model = export_graph(
                _to_graph_request(prepared, path), prepared.request.exporter
            )
            rules = _tighten_rules(prepared, graph)
            rules |= _try_rules(prepared, rules, path, _choose_rtol(prepared, model))
            require_several_sizes(rules.values())
        except FixedSizesError as error:
            stay = {symbol: prepared.sizes.get(symbol) for symbol in error.reasons}
            if not prepared.has_default_axes or None in stay.values():
                raise
            prepared.dynamic = fix_axes(prepared.dynamic, stay)
            prepared.rules = {s: r for s, r in prepared.rules.items() if s not in stay}
            prepared.notes += [
                f"{symbol} stays fixed at {stay[symbol]}: {why}"
                for symbol, why in error.reasons.items()
            ]
        else:
            prepared.rules = rules
            return graph, model


def _to_graph_request(prepared: _Prepared, path: Path) -> GraphRequest:
    return GraphRequest(prepared.source, prepared.flat, prepared.dynamic, prepared.opset, path)


def _tighten_rules(prepared: _Prepared, graph: ExportedGraph) -> dict[str, SizeRule]:
    tensors = prepared.source.named_tensors()
    rules = dict(prepared.rules)
    for symbol, limit in graph.limits.items():
        rules[symbol] = replace(rules[symbol], max=min(limit, rules[symbol].max or limit))
    return tighten_rules(
        rules,
        graph.guards,
        prepared.sizes,
        lambda sizes: shapes_at(tensors, prepared.dynamic, sizes),
    )


def _try_rules(
    prepared: _Prepared, rules: Mapping[str, SizeRule], path: Path, rtol: float
) -> dict[str, SizeRule]:
    rules = {s: rule for s, rule in rules.items() if s not in prepared.batches}
    file = path if prepared.request.proof.enabled else None
    return fit_rules(rules, file, _make_reference(prepared), rtol) if rules else {}


def _choose_rtol(prepared: _Prepared, model: OnnxModel) -> float:
    rtol = prepared.request.proof.rtol
    quantized = any(node.op_type == "QuantizeLinear" for node in walk_nodes(model.graph))
    return max(rtol, QUANTIZED_RTOL) if quantized else rtol


def _make_samples(prepared: _Prepared) -> list[Sample]:
    points = choose_proof_points(
        prepared.sizes, prepared.rules, prepared.request.proof.sizes, prepared.batches
    )
    return [_make_sample(prepared, point, index) for index, point in enumerate(points)]


def _make_sample(prepared: _Prepared, sizes: Mapping[str, int], index: int = 0) -> Sample:
    tensors = prepared.source.named_tensors()
    shapes = shapes_at(tensors, prepared.dynamic, sizes)
    feeds = make_feeds(prepared.source, shapes, prepared.request.proof.seed + 1 + index)
    with quiet_frameworks():
        expected = prepared.flat.run(feeds)
    return Sample(sizes, {name: t.numpy() for name, t in feeds.items()}, expected)


def _finish_model(
    prepared: _Prepared, graph: ExportedGraph, model: OnnxModel, samples: list[Sample]
) -> tuple[str, ...]:
    """Name nodes, weights and sizes; return the pins."""
    name_nodes_by_module(model)
    pins, notes = find_pins(model, prepared.regions)
    graph.notes += notes
    strip_origins(model)
    rename_weights(model)
    declare_inputs(model, prepared.dynamic)
    observed = {
        name: [(s.sizes, s.expected[name].shape) for s in samples] for name in samples[0].expected
    }
    declare_outputs(model, prepared.rules.values(), observed)
    write_export_facts(model, prepared.stated_rules, pins)
    return pins


@contextlib.contextmanager
def _blame_fallback(graph: ExportedGraph) -> Iterator[None]:
    """Add to a failed proof why the preferred exporter did not write the file."""
    try:
        yield
    except CheckFailedError as error:
        if not graph.fallback:
            raise
        message = f"{error.message}. The TorchScript exporter wrote it, since {graph.fallback}"
        raise CheckFailedError(message, hint=error.hint) from error


@contextlib.contextmanager
def _name_default_axes(prepared: _Prepared) -> Iterator[None]:
    """Add to a failed proof what to type where the sizes that vary are nobody's wish."""
    try:
        yield
    except CheckFailedError as error:
        free = [symbol for symbol in prepared.sizes if symbol not in prepared.batches]
        if not free or not prepared.has_default_axes:
            raise
        fixed = format_dynamic(fix_axes(prepared.dynamic, free))
        hint = f"{', '.join(free)} vary by default; to fix them: {fixed}"
        raise CheckFailedError(error.message, hint=f"{error.hint} {hint}") from error


def _prove(prepared: _Prepared, path: Path, samples: list[Sample], rtol: float) -> ExportProof:
    _require_determinism(prepared, samples[0])
    if not prepared.request.proof.enabled:
        return ExportProof("skipped", reason="--no-proof was given")
    return prove_file(path, samples, rtol=rtol, reference=_make_reference(prepared))


def _make_reference(prepared: _Prepared) -> Reference:
    return Reference(
        f"PyTorch {torch.__version__}",
        prepared.sizes,
        lambda sizes: _make_sample(prepared, sizes),
        lambda feeds: _run_source(prepared, feeds),
        lambda sample: run_rounding_otherwise(prepared.flat, sample),
    )


def _run_source(prepared: _Prepared, feeds: Feeds) -> Outputs:
    with quiet_frameworks():
        return prepared.flat.run({n: torch.from_numpy(array) for n, array in feeds.items()})


def _require_determinism(prepared: _Prepared, sample: Sample) -> None:
    feeds = {name: torch.from_numpy(array) for name, array in sample.feeds.items()}
    with quiet_frameworks():
        again = prepared.flat.run(feeds, times=2)
    for name, expected in sample.expected.items():
        if not np.array_equal(expected, again[name], equal_nan=expected.dtype.kind in "fc"):
            raise InputError(
                f"the model gives another {name!r} each time for the same input: it draws random "
                "numbers, or changes its own state",
                hint="Pass training=self.training to F.dropout, and state as inputs and outputs.",
            )


def _summarize(proof: ExportProof) -> str:
    if proof.status != "proven":
        return f"skipped: {proof.reason}"
    return f"{len(proof.points)} points, largest relative error {proof.max_error:.1e}"


def _describe(
    prepared: _Prepared,
    graph: ExportedGraph,
    model: OnnxModel,
    proof: ExportProof,
    pins: tuple[str, ...],
    samples: list[Sample],
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


def _note_tiny_outputs(samples: list[Sample]) -> list[str]:
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
