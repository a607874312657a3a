"""A cleaned file against the file it came from, in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from trtdeploy.backends.onnxruntime_session import OnnxRuntimeSession
from trtdeploy.core.arrays import Array, Feeds
from trtdeploy.core.errors import CheckFailedError
from trtdeploy.export.comparison import Comparison, compare_arrays, find_worst
from trtdeploy.export.onnx_expectations import (
    CANNOT_RUN,
    Expectation,
    FeedSource,
    ProofPlan,
    run_old_file,
)
from trtdeploy.export.proof_sizes import format_sizes
from trtdeploy.export.result import ExportProof, ProofPoint
from trtdeploy.graph.model import OnnxModel
from trtdeploy.parity.batch import BatchLayout, split_feeds

_FEWEST_PARTS = 2


def prove_cleaned(
    old: Path, new: Path, model: OnnxModel, plan: ProofPlan
) -> tuple[ExportProof, list[str]]:
    """Run both files on the same inputs, one file after the other.

    Args:
        old: The file as it was.
        new: The cleaned file.
        model: What ``new`` holds, to make inputs up for.
        plan: What to run.

    Returns:
        The proof, and what the user should know beside it.

    Raises:
        CheckFailedError: Outputs differ, or samples of a batch influence each other.
        InputError: The old file runs at none of the sizes that were tried.
        CompileError: ONNX Runtime refuses a file.
    """
    source = FeedSource(model, plan)
    further = () if plan.batch and plan.batch.symbols & plan.added else plan.batches
    device, expected, more = run_old_file(old, source, further)
    with OnnxRuntimeSession(new, optimize=False, quiet=True) as session:
        prover = _Prover(session, source, plan)
        points = [prover.compare(expectation) for expectation in expected]
        notes = prover.list_other_results(more) if plan.freed else []
        points += [] if plan.freed else [prover.compare(expectation) for expectation in more]
        prover.run_added_sizes(points[0].sizes)
        independent = prover.compare_samples(points[0].sizes)
    return ExportProof("proven", device, tuple(points), independent), notes


class _Prover:
    """The cleaned file, and what it is asked."""

    def __init__(self, session: OnnxRuntimeSession, source: FeedSource, plan: ProofPlan) -> None:
        self._session = session
        self._source = source
        self._plan = plan

    def compare(self, expected: Expectation) -> ProofPoint:
        """Compare with what the old file computed."""
        worst, comparison = self._measure(expected)
        if not comparison.equal:
            raise _differ(f"at {format_sizes(expected.sizes)} the cleaned file", worst, comparison)
        return ProofPoint(expected.sizes, comparison.error, worst)

    def list_other_results(self, expected: Sequence[Expectation]) -> list[str]:
        """Say where freeing the batch, as it was asked for, gave other results than before."""
        return [
            f"the source gives other results at {format_sizes(expectation.sizes)}: it mixes the "
            "samples of a batch, which this file does not"
            for expectation in expected
            if not self._measure(expectation)[1].equal
        ]

    def run_added_sizes(self, known: Mapping[str, int]) -> None:
        """Run where the old file could not go: added axes at other sizes."""
        batch = self._plan.batch.symbols if self._plan.batch else frozenset()
        added = self._plan.added - batch
        if not added:
            return
        reasons = []
        for sizes in self._source.list_sizes():
            changed = {symbol: sizes[symbol] for symbol in added}
            if changed == {symbol: known[symbol] for symbol in added}:
                continue
            try:
                self._session.run(self._source.make({**known, **changed}))
            except CANNOT_RUN as error:
                reasons.append(f"{format_sizes(changed)}: {error}")
                continue
            return
        raise CheckFailedError(
            f"{', '.join(sorted(added))} was made dynamic, and the file runs at its old size only. "
            + "; ".join(reasons[:2]),
            hint="Sizes of the example are written into the graph; export it again from its source "
            "with this axis dynamic.",
        )

    def compare_samples(self, known: Mapping[str, int]) -> bool | None:
        """Tell whether a larger batch gives what its parts give; None without one."""
        batch = self._plan.batch
        counts = [size // batch.size for size in self._plan.batches] if batch else []
        if batch is None or max(counts, default=0) < _FEWEST_PARTS:
            return None
        cuts = [batch.size] * max(counts)
        sizes = {**known, **dict.fromkeys(batch.symbols, sum(cuts))}
        feeds = self._source.make(sizes)
        whole = self._run(feeds, sizes)
        pieces = split_feeds(feeds, BatchLayout(dict(batch.axes)), cuts)
        parts = [self._session.run(piece) for piece in pieces]
        compared = {
            name: self._compare_parts([part[name] for part in parts], whole[name]) for name in whole
        }
        worst, comparison = find_worst(compared)
        if comparison.equal:
            return True
        if not self._plan.freed:
            return False
        raise _differ(
            f"samples of a batch influence each other: at {format_sizes(sizes)} the cleaned file",
            worst,
            comparison,
        )

    def _measure(self, expected: Expectation) -> tuple[str, Comparison]:
        found = self._run(self._source.make(expected.sizes), expected.sizes)
        compared = {
            name: self._compare_arrays(array, found[name])
            for name, array in expected.outputs.items()
        }
        return find_worst(compared)

    def _compare_parts(self, parts: list[Array], whole: Array) -> Comparison:
        joined = enumerate(_join_parts(parts, whole))
        return find_worst({str(i): self._compare_arrays(part, whole) for i, part in joined})[1]

    def _compare_arrays(self, expected: Array, found: Array) -> Comparison:
        if (expected.shape, expected.dtype) != (found.shape, found.dtype):
            names = (f"{array.dtype} {array.shape}" for array in (found, expected))
            return Comparison(1.0, equal=False, worst=" instead of ".join(names))
        return compare_arrays(expected, found, self._plan.options.rtol)

    def _run(self, feeds: Feeds, sizes: Mapping[str, int]) -> dict[str, Array]:
        try:
            return self._session.run(feeds)
        except CANNOT_RUN as error:
            raise CheckFailedError(
                f"the cleaned file does not run at {format_sizes(sizes)}: {error}",
                hint="Something inside still has the sizes of the example; export it again from "
                "its source.",
            ) from error


def _join_parts(parts: list[Array], whole: Array) -> list[Array]:
    """Return the parts one after the other where the whole is longer, else each by itself."""
    first = parts[0].shape
    if len(first) == whole.ndim:
        for axis, size in enumerate(first):
            if whole.shape[axis] == len(parts) * size and size:
                return [np.concatenate(parts, axis=axis)]
    return parts


def _differ(what: str, output: str, comparison: Comparison) -> CheckFailedError:
    return CheckFailedError(
        f"{what} gives another {output!r} than expected: {comparison.worst} (an error of "
        f"{comparison.error:.1e})",
        hint="Nothing was written. 'trtdeploy check' on the source names what is risky in it.",
    )
