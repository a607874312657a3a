"""A cleaned file against the file it came from, in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from trtdeploy.backends.onnxruntime_session import OnnxRuntimeSession
from trtdeploy.backends.session import Array, Feeds
from trtdeploy.core.errors import CheckFailedError
from trtdeploy.export.onnx_comparison import compare_outputs, join_parts, measure_gap
from trtdeploy.export.onnx_expectations import (
    CANNOT_RUN,
    Expectation,
    FeedSource,
    ProofPlan,
    format_sizes,
    run_old_file,
)
from trtdeploy.export.result import ExportProof, ProofPoint
from trtdeploy.graph.model import OnnxModel
from trtdeploy.parity.batch import BatchLayout, split_feeds


def prove_cleaned(old: Path, new: Path, model: OnnxModel, plan: ProofPlan) -> ExportProof:
    """Run both files on the same inputs, one file after the other.

    Args:
        old: The file as it was.
        new: The cleaned file.
        model: What ``new`` holds, to make inputs up for.
        plan: What to run.

    Raises:
        CheckFailedError: Outputs differ, or samples of a batch influence each other.
        InputError: The old file runs at none of the sizes that were tried.
        CompileError: ONNX Runtime refuses a file.
    """
    source = FeedSource(model, plan)
    device, expected = run_old_file(old, source)
    with OnnxRuntimeSession(new, optimize=False, quiet=True) as session:
        prover = _Prover(session, source, plan)
        points = tuple(prover.compare(expectation) for expectation in expected)
        prover.run_added_sizes(points[0].sizes)
        independent = prover.compare_samples(points[0].sizes)
    return ExportProof("proven", device, points, independent)


class _Prover:
    """The cleaned file, and what it is asked."""

    def __init__(self, session: OnnxRuntimeSession, source: FeedSource, plan: ProofPlan) -> None:
        self._session = session
        self._source = source
        self._plan = plan

    def compare(self, expected: Expectation) -> ProofPoint:
        """Compare with what the old file computed."""
        found = self._run(self._source.make(expected.sizes), expected.sizes)
        gap, worst = compare_outputs(expected.outputs, found)
        if gap > self._plan.options.rtol:
            raise _differ(f"at {format_sizes(expected.sizes)} the cleaned file", worst, gap)
        return ProofPoint(expected.sizes, gap, worst)

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
        """Tell whether twice the batch gives what its halves give; None without a batch."""
        batch = self._plan.batch
        if batch is None:
            return None
        sizes = {**known, **dict.fromkeys(batch.symbols, 2 * batch.size)}
        feeds = self._source.make(sizes)
        whole = self._run(feeds, sizes)
        halves = split_feeds(feeds, BatchLayout(dict(batch.axes)), (batch.size, batch.size))
        parts = [self._session.run(half) for half in halves]
        gaps = {name: _measure_parts([p[name] for p in parts], whole[name]) for name in whole}
        worst = max(gaps, key=gaps.__getitem__)
        if gaps[worst] <= self._plan.options.rtol:
            return True
        if not self._plan.freed:
            return False
        raise _differ(
            f"samples of a batch influence each other: at {format_sizes(sizes)} the cleaned file",
            worst,
            gaps[worst],
        )

    def _run(self, feeds: Feeds, sizes: Mapping[str, int]) -> dict[str, Array]:
        try:
            return self._session.run(feeds)
        except CANNOT_RUN as error:
            raise CheckFailedError(
                f"the cleaned file does not run at {format_sizes(sizes)}: {error}",
                hint="Something inside still has the sizes of the example; export it again from "
                "its source.",
            ) from error


def _measure_parts(parts: list[Array], whole: Array) -> float:
    return max(measure_gap(part, whole) for part in join_parts(parts, whole))


def _differ(what: str, output: str, error: float) -> CheckFailedError:
    size = f"by {error:.1e} of its largest value" if np.isfinite(error) else "in shape or value"
    return CheckFailedError(
        f"{what} gives another {output!r} than expected ({size})",
        hint="Nothing was written. 'trtdeploy check' on the source names what is risky in it.",
    )
