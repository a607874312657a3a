"""What PyTorch computes, as the reference that a written file is held against."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from trtdeploy.core.arrays import Feeds, Outputs
from trtdeploy.core.errors import CheckFailedError, InputError
from trtdeploy.export.proof import QUANTIZED_RTOL, ProofSample, Reference, prove_file
from trtdeploy.export.proof_sizes import choose_proof_points
from trtdeploy.export.pytorch.axes import fix_axes, format_dynamic
from trtdeploy.export.pytorch.example import make_feeds
from trtdeploy.export.pytorch.graph_file import ExportedGraph
from trtdeploy.export.pytorch.prepared import PreparedSource
from trtdeploy.export.pytorch.quiet import quiet_frameworks
from trtdeploy.export.pytorch.rounding import run_rounding_otherwise
from trtdeploy.export.pytorch.size_search import shapes_at
from trtdeploy.export.result import ExportProof
from trtdeploy.graph.model import OnnxModel, walk_nodes


def make_samples(prepared: PreparedSource) -> list[ProofSample]:
    """Return inputs and expected outputs at every point of the proof."""
    points = choose_proof_points(
        prepared.sizes, prepared.axes.rules, prepared.request.proof.sizes, prepared.batches
    )
    return [make_sample(prepared, point, index) for index, point in enumerate(points)]


def make_sample(prepared: PreparedSource, sizes: Mapping[str, int], index: int = 0) -> ProofSample:
    """Return inputs of the given sizes, and what the source makes of them.

    Samples of another index hold other values.
    """
    tensors = prepared.source.named_tensors()
    shapes = shapes_at(tensors, prepared.axes.dynamic, sizes)
    feeds = make_feeds(prepared.source, shapes, prepared.request.proof.seed + 1 + index)
    with quiet_frameworks():
        expected = prepared.flat.run(feeds)
    return ProofSample(sizes, {name: t.numpy() for name, t in feeds.items()}, expected)


def choose_rtol(prepared: PreparedSource, model: OnnxModel) -> float:
    """Return the tolerance asked for, or a larger one that Q/DQ nodes need."""
    rtol = prepared.request.proof.rtol
    quantized = any(node.op_type == "QuantizeLinear" for node in walk_nodes(model.graph))
    return max(rtol, QUANTIZED_RTOL) if quantized else rtol


def prove_samples(
    prepared: PreparedSource,
    graph: ExportedGraph,
    path: Path,
    samples: list[ProofSample],
    rtol: float,
) -> ExportProof:
    """Compare the file with the source.

    Raises:
        InputError: The source computes something else each time.
        CheckFailedError: The file does not compute what the source computes.
    """
    _require_determinism(prepared, samples[0])
    if not prepared.request.proof.enabled:
        return ExportProof("skipped", reason="--no-proof was given")
    try:
        return prove_file(path, samples, rtol=rtol, reference=make_reference(prepared))
    except CheckFailedError as error:
        raise _explain_difference(error, prepared, graph) from error


def make_reference(prepared: PreparedSource) -> Reference:
    """Return the source as a proof sees it."""
    return Reference(
        f"PyTorch {torch.__version__}",
        prepared.sizes,
        lambda sizes: make_sample(prepared, sizes),
        lambda feeds: _run_source(prepared, feeds),
        lambda sample: run_rounding_otherwise(prepared.flat, sample),
    )


def _run_source(prepared: PreparedSource, feeds: Feeds) -> Outputs:
    with quiet_frameworks():
        return prepared.flat.run({n: torch.from_numpy(array) for n, array in feeds.items()})


def _require_determinism(prepared: PreparedSource, sample: ProofSample) -> None:
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


def _explain_difference(
    error: CheckFailedError, prepared: PreparedSource, graph: ExportedGraph
) -> CheckFailedError:
    """Say why the preferred exporter did not write the file, and how to fix what nobody asked for.

    Sizes that vary by default are nobody's wish.
    """
    message, hint = error.message, error.hint
    if graph.fallback:
        message += f". The TorchScript exporter wrote it, since {graph.fallback}"
    free = [symbol for symbol in prepared.sizes if symbol not in prepared.batches]
    if free and prepared.has_default_axes:
        fixed = format_dynamic(fix_axes(prepared.axes.dynamic, free))
        hint = f"{hint} {', '.join(free)} vary by default; to fix them: {fixed}"
    return CheckFailedError(message, hint=hint)
