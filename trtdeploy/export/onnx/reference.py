"""A cleaned file against the file it came from: inputs, sizes, and what the old file computes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from trtdeploy.backends.onnxruntime.session import OnnxRuntimeSession
from trtdeploy.config.batch_layout import BatchLayout
from trtdeploy.core.arrays import Array
from trtdeploy.core.errors import (
    CheckFailedError,
    CompileError,
    ExecutionError,
    FeedError,
    InputError,
)
from trtdeploy.core.tensors import SizeRule, TensorSpec, format_shape
from trtdeploy.export.onnx.sizes import choose_shapes, list_tried_sizes
from trtdeploy.export.proof import FileProof, ProofSample, Reference
from trtdeploy.export.request import InputSpec, ProofOptions
from trtdeploy.export.result import ExportProof
from trtdeploy.graph.index import ModelIndex, build_index
from trtdeploy.graph.model import OnnxModel
from trtdeploy.graph.numpy_types import to_numpy_dtype
from trtdeploy.samples.synthetic.making import make_synthetic_feeds

_MOST_POINTS = 2
_MOST_BYTES = 1 << 32
"""Of one input: more than any engine is fed, and less than fills the memory."""


@dataclass(frozen=True)
class ProofPlan:
    """What a proof needs to know.

    Attributes:
        inputs: Ranges of made-up values, where the user gave some.
        example: Sizes by symbol that the old file is known to work with.
        added: Symbols that have one size in the old file.
        batch: Where the batch is; None when it is fixed.
        freed: The batch was made free, so samples must not influence each other.
        rules: What is known about sizes.
    """

    options: ProofOptions
    inputs: tuple[InputSpec, ...]
    example: Mapping[str, int]
    added: frozenset[str]
    batch: BatchLayout | None
    freed: bool
    rules: tuple[SizeRule, ...]

    @property
    def adds_batch(self) -> bool:
        """Whether the old file takes one batch only."""
        return self.batch is not None and not self.added.isdisjoint(self.batch.symbols)

    @property
    def batches(self) -> tuple[int, ...]:
        """Batches to try beside the exported one: twice as many, and those that were stated."""
        if self.batch is None:
            return ()
        stated = [size for s in self.batch.symbols for size in self.options.sizes.get(s, ())]
        accepted = [rule for rule in self.rules if rule.symbol in self.batch.symbols]
        return tuple(
            size
            for size in dict.fromkeys([2 * self.batch.exported, *stated])
            if size != self.batch.exported and all(rule.accepts(size) for rule in accepted)
        )


class FeedSource:
    """Makes inputs up.

    Args:
        model: The model to feed.
        plan: What the proof needs to know.
    """

    def __init__(self, model: OnnxModel, plan: ProofPlan) -> None:
        self._index = build_index(model)
        self._inputs = model.input_specs()
        self._plan = plan
        given = {item.name for item in plan.inputs if item.low is not None}
        symbols = {dim for spec in self._inputs for dim in spec.shape or ()}
        self._conditions = find_conditions(self._index) - given - symbols

    def list_sizes(self, batch: int | None = None) -> list[dict[str, int]]:
        """Return sizes by symbol to try, the likeliest first; the batch is the exported one.

        Args:
            batch: Another batch.
        """
        plan = self._plan
        size = plan.batch.exported if plan.batch and batch is None else batch
        batches = dict.fromkeys(plan.batch.symbols, size or 1) if plan.batch else {}
        listed = list_tried_sizes(self._inputs, plan.example, plan.options.sizes, plan.rules)
        return [{**sizes, **batches} for sizes in listed]

    def list_decisions(self) -> list[dict[str, int]]:
        """Return what inputs that an If decides by are to be: all false, then all true."""
        names = sorted(self._conditions)
        return [dict.fromkeys(names, value) for value in (0, 1)] if names else [{}]

    def make_sample(self, sizes: Mapping[str, int]) -> ProofSample:
        """Return one array per input, the same ones for the same sizes; nothing is expected yet.

        Args:
            sizes: By symbol; 0 or 1 by input that an If decides by.

        Raises:
            InputError: An input would fill the memory.
        """
        shapes = choose_shapes(self._inputs, sizes)
        for spec in self._inputs:
            _refuse_huge(spec, shapes[spec.name])
        seed = self._plan.options.seed
        feeds = dict(make_synthetic_feeds(self._index, shapes, seed=seed).feeds)
        for number, item in enumerate(self._plan.inputs):
            if item.low is not None and item.name in feeds:
                feeds[item.name] = _draw(item, feeds[item.name], seed + number)
        for name in self._conditions & sizes.keys():
            feeds[name] = np.full(shapes[name], bool(sizes[name]))
        return ProofSample(sizes, feeds, {})


def find_conditions(index: ModelIndex) -> frozenset[str]:
    """Return the inputs that an If of the main graph decides by, nothing in between."""
    decided = {n.input[0] for n in index.main.nodes if n.op_type == "If" and n.input}
    return frozenset(decided & index.main.inputs)


def _refuse_huge(spec: TensorSpec, shape: tuple[int, ...]) -> None:
    needed = math.prod(shape) * to_numpy_dtype(spec.dtype).itemsize
    if needed > _MOST_BYTES:
        raise InputError(
            f"input {spec.name!r} of {format_shape(shape)} {spec.dtype.label} takes "
            f"{needed / 2**30:.0f} GiB: the file cannot be run here",
            hint="Give smaller sizes with --input or --prove-at; a fixed size becomes dynamic "
            "with --dynamic. --no-proof writes the file unproven.",
        )


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
    device, samples, more = run_old_file(old, source, () if plan.adds_batch else plan.batches)
    known = samples[0].sizes
    reference = Reference(
        device,
        batch_margin=1,  # the same arithmetic as the old file's
        is_mixing_wrong=plan.freed,
        failure_hint="Something inside still has the sizes of the example; export it again from "
        "its source.",
        difference_hint="Nothing was written. 'trtdeploy check' on the source names what is risky "
        "in it.",
    )
    with OnnxRuntimeSession(new, optimize=False, quiet=True) as session:
        proof = FileProof(session, reference, plan.options.rtol)
        required = samples if plan.freed else [*samples, *more]
        points = [proof.compare(sample) for sample in required]
        notes = [
            f"the source gives other results at {sample}: it mixes the samples of a batch, which "
            "this file does not"
            for sample in more
            if plan.freed and not proof.agrees(sample)
        ]
        _run_added_sizes(proof, source, plan, known)
        independent = _check_batch(proof, source, plan, known)
    return ExportProof("proven", device, tuple(points), independent), notes


def _run_added_sizes(
    proof: FileProof, source: FeedSource, plan: ProofPlan, known: Mapping[str, int]
) -> None:
    """Run where the old file could not go: added axes at other sizes."""
    added = plan.added.difference(plan.batch.symbols if plan.batch else ())
    reasons = []
    for sizes in source.list_sizes():
        changed = {symbol: sizes[symbol] for symbol in added}
        if changed == {symbol: known[symbol] for symbol in added}:
            continue
        try:
            proof.run(source.make_sample({**known, **changed}))
        except CheckFailedError as error:
            reasons.append(error.message)
            continue
        return
    if not added:
        return
    raise CheckFailedError(
        f"{', '.join(sorted(added))} was made dynamic, and the file runs at its old size only. "
        + "; ".join(reasons[:2]),
        hint="Sizes of the example are written into the graph; export it again from its source "
        "with this axis dynamic.",
    )


def _check_batch(
    proof: FileProof, source: FeedSource, plan: ProofPlan, known: Mapping[str, int]
) -> bool | None:
    """Tell whether the largest batch that is tried gives what its parts give."""
    batch, largest = plan.batch, max(plan.batches, default=0)
    if batch is None or largest < batch.exported:
        return None
    size = largest // batch.exported * batch.exported
    whole = source.make_sample({**known, **dict.fromkeys(batch.symbols, size)})
    return proof.check_batch(replace(whole, expected=proof.run(whole)), batch)


def run_old_file(
    path: Path, source: FeedSource, batches: Sequence[int] = ()
) -> tuple[str, list[ProofSample], list[ProofSample]]:
    """Return what ran the file, and its outputs at the first sizes that it runs at.

    The session is closed again: a model of gigabytes is then in memory once, not twice.

    Args:
        path: The file.
        source: Of its inputs.
        batches: Further batches to run it at, where it takes them.

    Returns:
        The device; outputs at the exported batch, at least one; outputs at further batches.

    Raises:
        InputError: It runs at none of the sizes.
        CompileError: ONNX Runtime refuses the file.
    """
    with OnnxRuntimeSession(path, optimize=False, quiet=True) as session:
        found, tried = _run_at(session, source, source.list_sizes(), _MOST_POINTS)
        more = [
            sample
            for batch in batches
            for sample in _run_at(session, source, source.list_sizes(batch), 1)[0]
        ]
    if not found:
        raise InputError(
            "ONNX Runtime runs the file at none of the sizes that were tried: "
            + "; ".join(tried[:3]),
            hint="Give sizes that work with --input NAME:DTYPE:SHAPE.",
        )
    return session.device, found, more


def runs_at_batch(path: Path, source: FeedSource, batch: int) -> bool:
    """Tell whether a file takes a batch, whatever it makes of it."""
    try:
        with OnnxRuntimeSession(path, optimize=False, quiet=True) as session:
            return bool(_run_at(session, source, source.list_sizes(batch), 1)[0])
    except CompileError:
        return False


def _run_at(
    session: OnnxRuntimeSession, source: FeedSource, listed: Sequence[dict[str, int]], wanted: int
) -> tuple[list[ProofSample], list[str]]:
    """Return outputs at the first ``wanted`` sizes that work, and why others do not."""
    found: list[ProofSample] = []
    tried: list[str] = []
    worked = 0
    for sizes in listed:
        count = len(found)
        for decisions in source.list_decisions():
            sample = source.make_sample({**sizes, **decisions})
            try:
                found.append(replace(sample, expected=session.run(sample.feeds)))
            except (FeedError, ExecutionError) as error:
                tried.append(f"{sample}: {error}")
        worked += len(found) > count
        if worked == wanted:
            break
    return found, tried


def _draw(item: InputSpec, like: Array, seed: int) -> Array:
    low, high = item.low or 0.0, item.high if item.high is not None else 1.0
    rng = np.random.default_rng(seed)
    if like.dtype.kind in "iub":
        drawn: Array = np.asarray(rng.integers(int(low), int(high), like.shape, endpoint=True))
    else:
        drawn = np.asarray(rng.uniform(low, high, like.shape))
    return drawn.astype(like.dtype)  # of a scalar's shape, numpy draws a bare number
