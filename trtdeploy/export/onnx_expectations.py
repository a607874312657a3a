"""Inputs and sizes to prove a cleaned file at, and what the old file computes for them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from trtdeploy.backends.onnxruntime_session import OnnxRuntimeSession
from trtdeploy.core.arrays import Array, Feeds
from trtdeploy.core.errors import CompileError, ExecutionError, FeedError, InputError
from trtdeploy.core.tensors import SizeRule, TensorSpec, format_shape
from trtdeploy.export.onnx_sizes import BatchPlan, choose_shapes, list_tried_sizes
from trtdeploy.export.proof_sizes import format_sizes
from trtdeploy.export.request import InputSpec, ProofOptions
from trtdeploy.graph.index import ModelIndex, build_index
from trtdeploy.graph.model import OnnxModel
from trtdeploy.parity.samples_axes import to_numpy_dtype
from trtdeploy.parity.synthetic import make_synthetic_feeds

CANNOT_RUN: Final = (FeedError, ExecutionError)
_MOST_POINTS = 2
_MOST_BYTES = 1 << 32
"""Of one input: more than any engine is fed, and less than fills the memory."""


@dataclass(frozen=True)
class ProofPlan:
    """What a proof needs to know.

    Attributes:
        options: How it is done.
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
    batch: BatchPlan | None
    freed: bool
    rules: tuple[SizeRule, ...]

    @property
    def batches(self) -> tuple[int, ...]:
        """Batches to try beside the exported one: twice as many, and those that were stated."""
        if self.batch is None:
            return ()
        stated = [size for s in self.batch.symbols for size in self.options.sizes.get(s, ())]
        accepted = [rule for rule in self.rules if rule.symbol in self.batch.symbols]
        return tuple(
            size
            for size in dict.fromkeys([2 * self.batch.size, *stated])
            if size != self.batch.size and all(rule.accepts(size) for rule in accepted)
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
        size = plan.batch.size if plan.batch and batch is None else batch
        batches = dict.fromkeys(plan.batch.symbols, size or 1) if plan.batch else {}
        listed = list_tried_sizes(self._inputs, plan.example, plan.options.sizes, plan.rules)
        return [{**sizes, **batches} for sizes in listed]

    def list_decisions(self) -> list[dict[str, int]]:
        """Return what inputs that an If decides by are to be: all false, then all true."""
        names = sorted(self._conditions)
        return [dict.fromkeys(names, value) for value in (0, 1)] if names else [{}]

    def make(self, sizes: Mapping[str, int]) -> Feeds:
        """Return one array per input, the same ones for the same sizes.

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
        return feeds


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


@dataclass(frozen=True)
class Expectation:
    """What the old file computes at one set of sizes, as ``FeedSource.make`` takes them."""

    sizes: dict[str, int]
    outputs: dict[str, Array]


def run_old_file(
    path: Path, source: FeedSource, batches: Sequence[int] = ()
) -> tuple[str, list[Expectation], list[Expectation]]:
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
            expectation
            for batch in batches
            for expectation in _run_at(session, source, source.list_sizes(batch), 1)[0]
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
) -> tuple[list[Expectation], list[str]]:
    """Return outputs at the first ``wanted`` sizes that work, and why others do not."""
    found: list[Expectation] = []
    tried: list[str] = []
    worked = 0
    for sizes in listed:
        count = len(found)
        for decisions in source.list_decisions():
            at = {**sizes, **decisions}
            try:
                found.append(Expectation(at, session.run(source.make(at))))
            except CANNOT_RUN as error:
                tried.append(f"{format_sizes(at)}: {error}")
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
