"""The task metric of a parity check: labels beside the samples, both models scored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from trtdeploy.core.errors import InputError
from trtdeploy.core.tensors import Feeds, Runner
from trtdeploy.graph.model import OnnxModel
from trtdeploy.parity.result import ParityReport
from trtdeploy.parity.samples import open_samples
from trtdeploy.parity.task_metric import measure_task_metric
from trtdeploy.pipeline.parity_request import ParityRequest

LABELS = "labels"
"""Name of the array of labels in an ``.npz`` file, one label (or label map) per sample."""


def add_task_metric(
    report: ParityReport,
    request: ParityRequest,
    reference: Runner,
    candidate: Runner,
    model: OnnxModel,
) -> ParityReport:
    """Return the report with the task metric, if one was asked for.

    Raises:
        InputError: There are no labels, or not as many as samples.
        UsageError: There is no such metric.
    """
    judgement = request.judgement
    if not judgement.metric or request.data is None:
        return report
    samples = iterate_labelled(request, request.data, model)
    metric = measure_task_metric(
        judgement.metric, reference, candidate, samples, max_drop=judgement.max_drop
    )
    return replace(report, task_metric=metric)


def iterate_labelled(
    request: ParityRequest, data: Path, model: OnnxModel
) -> Iterator[tuple[Feeds, np.ndarray[Any, Any]]]:
    """Yield feeds and their labels, in batches of the first profile's usual sizes.

    Raises:
        InputError: There are no labels, or not as many as samples.
    """
    source = open_samples(data, model.input_specs(), request.preprocessing)
    labels = {path: _read_labels(path) for path in _list_files(data)}
    first = request.optimization_profiles[0]
    shapes = {name: sizes.opt for name, sizes in first.shapes.items()}
    for batch in source.iterate_batches(shapes):
        rows = []
        for sample in batch.samples:
            found = labels[Path(sample.file)]
            if sample.index >= len(found):
                raise InputError(
                    f"{sample.file} has {len(found)} labels and more samples than that",
                    hint=f"Give one entry of {LABELS!r} per sample.",
                )
            rows.append(found[sample.index])
        yield batch.feeds, np.stack(rows)


def _list_files(data: Path) -> list[Path]:
    return [data] if data.is_file() else sorted(data.glob("*.npz"))


def _read_labels(path: Path) -> np.ndarray[Any, Any]:
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as archive:
            if LABELS in archive.files:
                found: np.ndarray[Any, Any] = archive[LABELS]
                return np.atleast_1d(found)
    raise InputError(
        f"{path} has no array {LABELS!r}, which the metric needs",
        hint=f"numpy.savez(path, <input>=samples, {LABELS}=labels)",
    )
