"""Inputs and sizes to prove a cleaned file at, and what the old file computes for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from trtdeploy.backends.onnxruntime_session import OnnxRuntimeSession
from trtdeploy.backends.session import Array, Feeds
from trtdeploy.core.errors import ExecutionError, FeedError, InputError
from trtdeploy.core.tensors import SizeRule
from trtdeploy.export.onnx_sizes import BatchPlan, choose_shapes, list_tried_sizes
from trtdeploy.export.request import InputSpec, ProofOptions
from trtdeploy.graph.index import build_index
from trtdeploy.graph.model import OnnxModel
from trtdeploy.parity.synthetic import make_synthetic_feeds

CANNOT_RUN: Final = (FeedError, ExecutionError)
_MOST_POINTS = 2


@dataclass(frozen=True)
class ProofPlan:
    """What a proof needs to know.

    Attributes:
        options: How it is done.
        inputs: Ranges of made-up values, where the user gave some.
        example: Sizes by symbol that the old file is known to work with.
        added: Symbols that the old file did not have: it runs at their example sizes only.
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

    def list_sizes(self) -> list[dict[str, int]]:
        """Return sizes by symbol to try, the likeliest first; the batch is the exported one."""
        plan = self._plan
        batch = dict.fromkeys(plan.batch.symbols, plan.batch.size) if plan.batch else {}
        listed = list_tried_sizes(self._inputs, plan.example, plan.options.sizes, plan.rules)
        return [{**sizes, **batch} for sizes in listed]

    def make(self, sizes: Mapping[str, int]) -> Feeds:
        """Return one array per input, the same ones for the same sizes."""
        shapes = choose_shapes(self._inputs, sizes)
        seed = self._plan.options.seed
        feeds = dict(make_synthetic_feeds(self._index, shapes, seed=seed).feeds)
        for number, item in enumerate(self._plan.inputs):
            if item.low is not None and item.name in feeds:
                feeds[item.name] = _draw(item, feeds[item.name], seed + number)
        return feeds


@dataclass(frozen=True)
class Expectation:
    """What the old file computes at one set of sizes."""

    sizes: dict[str, int]
    outputs: dict[str, Array]


def run_old_file(path: Path, source: FeedSource) -> tuple[str, list[Expectation]]:
    """Return what ran the file, and its outputs at the first sizes that it runs at.

    The session is closed again: a model of gigabytes is then in memory once, not twice.

    Raises:
        InputError: It runs at none of the sizes.
        CompileError: ONNX Runtime refuses the file.
    """
    found: list[Expectation] = []
    tried: list[str] = []
    with OnnxRuntimeSession(path, optimize=False, quiet=True) as session:
        for sizes in source.list_sizes():
            try:
                found.append(Expectation(sizes, session.run(source.make(sizes))))
            except CANNOT_RUN as error:
                tried.append(f"{format_sizes(sizes)}: {error}")
            if len(found) == _MOST_POINTS:
                break
    if not found:
        raise InputError(
            "ONNX Runtime runs the file at none of the sizes that were tried: "
            + "; ".join(tried[:3]),
            hint="Give sizes that work with --input NAME:DTYPE:SHAPE.",
        )
    return session.device, found


def format_sizes(sizes: Mapping[str, int]) -> str:
    """Return ``batch=2, height=64``."""
    return ", ".join(f"{symbol}={size}" for symbol, size in sizes.items()) or "its fixed sizes"


def _draw(item: InputSpec, like: Array, seed: int) -> Array:
    low, high = item.low or 0.0, item.high if item.high is not None else 1.0
    rng = np.random.default_rng(seed)
    if like.dtype.kind in "iub":
        drawn: Array = np.asarray(rng.integers(int(low), int(high), like.shape, endpoint=True))
    else:
        drawn = np.asarray(rng.uniform(low, high, like.shape))
    return drawn.astype(like.dtype)  # of a scalar's shape, numpy draws a bare number
