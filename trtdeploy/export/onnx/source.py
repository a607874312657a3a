"""An existing ONNX file, cleaned."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trtdeploy.config.axis_roles import find_dynamic_axes
from trtdeploy.core.errors import UsageError
from trtdeploy.core.steps import ProgressCallback, StepRunner, ignore_progress
from trtdeploy.export.exporting import refuse_options
from trtdeploy.export.file_output import open_output_file
from trtdeploy.export.onnx.blockers import REPAIRED, TRAINING, check_file, refuse_blockers
from trtdeploy.export.onnx.cleaning import CleanedModel, clean_model
from trtdeploy.export.onnx.reference import (
    FeedSource,
    find_conditions,
    prove_cleaned,
    runs_at_batch,
)
from trtdeploy.export.proof_sizes import check_stated_sizes
from trtdeploy.export.request import ExportRequest
from trtdeploy.export.result import ExportProof, ExportResult
from trtdeploy.graph.export_facts import read_pins, write_export_facts
from trtdeploy.graph.index import build_index
from trtdeploy.graph.loading import load_model
from trtdeploy.graph.model import OnnxModel, walk_nodes
from trtdeploy.graph.saving import save_model

_TRAINING_SETTING = "training=inference"
_NAMED = 3


def clean_onnx(
    request: ExportRequest, progress: ProgressCallback = ignore_progress
) -> ExportResult:
    """Write a cleaned copy of the ONNX file ``request.source``; the file itself is not touched.

    Raises:
        ModelFileError: The file cannot be read, or has blockers that cleaning does not remove.
        UsageError: An axis, input, option or output path makes no sense.
        CheckFailedError: The cleaned file does not compute what the file did; nothing is written.
        InputError: The file cannot be run, or its opset not be changed as asked.
    """
    refuse_options(request, "ONNX", "weights", "download", "exporter")
    strip = _read_config(request.config)
    steps = StepRunner(progress)
    with steps.run("load") as step:
        loaded = load_model(request.source)
        _refuse_overwriting(loaded, request.output)
        ignored = REPAIRED | ({TRAINING} if strip else frozenset())
        refuse_blockers(check_file(loaded, request.profile), ignored=ignored)
        step.detail = f"opset {loaded.opset}, {len(loaded.graph.node)} nodes"
    with steps.run("clean") as step:
        cleaned = _clean(loaded, request, strip_training=strip)
        refuse_blockers(check_file(cleaned.model, request.profile))
        model = cleaned.model
        facts = {"cleaned_from": loaded.path.name, "changes": model.changes}
        write_export_facts(model, cleaned.rules, read_pins(loaded), facts)
        step.detail = f"opset {model.opset}, {len(model.graph.node)} nodes"
    with open_output_file(request.output) as path, steps.run("prove") as step:
        save_model(model, path)
        proof, notes = _prove(cleaned, path)
        step.detail = proof.status
    return _describe_result(cleaned, proof, notes)


def _clean(loaded: OnnxModel, request: ExportRequest, *, strip_training: bool) -> CleanedModel:
    """Clean a model; a batch that the file has and takes is freed only when that was asked for."""
    cleaned = clean_model(loaded, request, strip_training=strip_training)
    axes = find_dynamic_axes(cleaned.model.input_specs())
    check_stated_sizes(
        [axis.symbol for axis in axes],
        {rule.symbol: rule for rule in cleaned.rules},
        request.proof.sizes,
    )
    batch = cleaned.batch
    if batch is None or not cleaned.freed or cleaned.adds_batch:
        return cleaned
    if any(axis in cleaned.axes.get(name, {}) for name, axis in batch.inputs.items()):
        return cleaned
    batches = cleaned.tried_batches
    with _open_reference(cleaned) as reference:
        source = FeedSource(cleaned)
        if batches and not any(runs_at_batch(reference, source, batch) for batch in batches):
            return cleaned
    return clean_model(loaded, request, strip_training=strip_training, keep_batch=True)


def _describe_result(cleaned: CleanedModel, proof: ExportProof, notes: list[str]) -> ExportResult:
    model, request = cleaned.model, cleaned.request
    return ExportResult(
        path=request.output,
        source=request.source,
        exporter="cleaned",
        opset=model.opset,
        opset_reason=cleaned.opset_reason,
        inputs=model.input_specs(),
        outputs=model.output_specs(),
        proof=proof,
        size_rules=cleaned.rules,
        pins=read_pins(model),
        notes=(*notes, *_describe_notes(cleaned, proof)),
        changes=tuple(model.changes),
    )


def _read_config(config: tuple[str, ...]) -> bool:
    unknown = [text for text in config if text != _TRAINING_SETTING]
    if unknown:
        raise UsageError(
            f"--config {unknown[0]}: an ONNX file has no such setting",
            hint=f"There is one: --config {_TRAINING_SETTING}",
        )
    return bool(config)


def _refuse_overwriting(model: OnnxModel, output: Path) -> None:
    sources = {path.resolve() for path in (model.path, *model.data_files)}
    for target in (output, output.with_name(output.name + ".data")):
        if target.resolve() in sources:
            raise UsageError(
                f"{target} belongs to the file that is to be cleaned",
                hint="The source is never changed: choose another place with -o.",
            )


@contextmanager
def _open_reference(cleaned: CleanedModel) -> Iterator[Path]:
    """Give the file that the cleaned one must agree with."""
    if cleaned.reference is None:
        yield Path(cleaned.request.source)
        return
    with tempfile.TemporaryDirectory(prefix="trtdeploy-export-") as folder:
        reference = Path(folder) / "reference.onnx"
        save_model(cleaned.reference, reference)
        yield reference


def _prove(cleaned: CleanedModel, path: Path) -> tuple[ExportProof, list[str]]:
    if not cleaned.request.proof.enabled:
        return ExportProof("skipped", reason="not asked for"), []
    with _open_reference(cleaned) as reference:
        return prove_cleaned(reference, path, cleaned)


def _describe_notes(cleaned: CleanedModel, proof: ExportProof) -> tuple[str, ...]:
    notes = []
    if proof.batch_independent is False:
        notes.append(
            "samples of a batch influence each other, as they did in the source: an engine with a "
            "batch above 1 gives other results than one sample at a time"
        )
    if cleaned.batch_kept and cleaned.batch is not None:
        name, axis = next(iter(cleaned.batch.inputs.items()))
        notes.append(
            f"nodes that join what lies along axis {axis} of {name!r} stay, because the source "
            f"runs that way. If it counts samples, --dynamic {name}:{axis}=batch keeps them apart"
        )
    if proof.status == "proven":
        notes += _note_unsure_branches(cleaned.model)
    read = {name for node in walk_nodes(cleaned.model.graph) for name in node.input}
    unread = [spec.name for spec in cleaned.model.input_specs() if spec.name not in read]
    notes += [
        f"nothing reads the input {name!r}; it stays, because callers feed it" for name in unread
    ]
    return tuple(notes)


def _note_unsure_branches(model: OnnxModel) -> list[str]:
    index = build_index(model)
    conditions = find_conditions(index)
    unsure = [
        repr(node.name)
        for scope, node in index.nodes()
        if node.op_type == "If" and not (scope is index.main and node.input[0] in conditions)
    ]
    if not unsure:
        return []
    named = ", ".join(unsure[:_NAMED])
    named += f" and {len(unsure) - _NAMED} more" if len(unsure) > _NAMED else ""
    return [f"the proof may have run one branch only of If {named}: computed values decide there"]
