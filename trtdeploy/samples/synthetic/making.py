"""Made-up inputs that a model can run on, when the user has none: never a proof of accuracy."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trtdeploy.core.arrays import Array
from trtdeploy.core.errors import InputError
from trtdeploy.core.tensors import TensorSpec
from trtdeploy.graph.index import ModelIndex
from trtdeploy.graph.numpy_types import to_numpy_dtype
from trtdeploy.samples.synthetic.request import InputRequest, describe_other_inputs
from trtdeploy.samples.synthetic.rules import RULES, Answer
from trtdeploy.samples.synthetic.shapes import infer_sizes
from trtdeploy.samples.synthetic.uses import InputTracer


@dataclass(frozen=True)
class SyntheticFeeds:
    """Feeds that were made up.

    Attributes:
        feeds: One array per input, of the model's types and the asked shapes.
        assumptions: What each input holds and why, e.g. ``whole numbers from 0 to 9: Gather
            'embed' has 10 rows``.
        seed: What the random numbers came from.
    """

    feeds: dict[str, Array]
    assumptions: dict[str, str]
    seed: int
    is_synthetic: ClassVar[bool] = True

    @property
    def description(self) -> str:
        """For reports: ``synthetic (seed 0)``."""
        return f"synthetic (seed {self.seed})"

    @property
    def notes(self) -> tuple[str, ...]:
        """One sentence per input."""
        return tuple(f"synthetic input {name!r}: {text}" for name, text in self.assumptions.items())


def make_synthetic_feeds(
    index: ModelIndex,
    shapes: Mapping[str, tuple[int, ...]],
    values: Mapping[str, tuple[int, ...]] | None = None,
    *,
    seed: int = 0,
) -> SyntheticFeeds:
    """Make up feeds that respect types and ranges, as far as the graph and the names tell.

    The values of an input are followed through the graph: what looks up rows stays inside the
    table, what is read as true or false becomes a mask, what sizes something is positive. An
    input's values depend on its name, the shapes and the seed, not on the order of the inputs.

    Args:
        index: The model, normalized (``build_index(normalize_model(model))``).
        shapes: Shape of every input, e.g. those of an optimization profile at ``opt``.
        values: Contents of shape tensors at the same point, in row-major order.
        seed: Not negative.

    Raises:
        InputError: An input has no shape, or one of the wrong rank or number of values.
    """
    inputs = index.model.input_specs()
    contents = dict(values or {})
    for spec in inputs:
        _check_request(spec, shapes, contents)
    tracer = InputTracer(index, infer_sizes(index.model, shapes, contents))
    others = describe_other_inputs(inputs, shapes)
    feeds: dict[str, Array] = {}
    assumptions: dict[str, str] = {}
    for spec in inputs:
        request = InputRequest(
            spec,
            shapes[spec.name],
            contents.get(spec.name),
            tracer.find_uses(spec.name),
            others,
            _make_rng(seed, spec.name),
        )
        array, assumptions[spec.name] = _apply_rules(request)
        # C order, and an array of its own: runtimes take nothing else.
        kind = to_numpy_dtype(spec.dtype)
        feeds[spec.name] = np.require(array.astype(kind), requirements=["C", "W"])
    return SyntheticFeeds(feeds, assumptions, seed)


def _apply_rules(request: InputRequest) -> Answer:
    answers = (rule(request) for rule in RULES)
    return next(answer for answer in answers if answer is not None)


def _make_rng(seed: int, name: str) -> np.random.Generator:
    digest = hashlib.sha256(name.encode()).digest()[:8]
    return np.random.default_rng([seed, int.from_bytes(digest, "little")])


def _check_request(
    spec: TensorSpec,
    shapes: Mapping[str, tuple[int, ...]],
    values: Mapping[str, tuple[int, ...]],
) -> None:
    shape = shapes.get(spec.name)
    if shape is None:
        raise InputError(f"input {spec.name!r}: no shape given to make values for")
    if spec.shape is not None:
        fits = len(shape) == len(spec.shape) and all(
            isinstance(wanted, str) or wanted == given
            for wanted, given in zip(spec.shape, shape, strict=True)
        )
        if not fits:
            raise InputError(
                f"input {spec.name!r}: given shape {list(shape)}, expected {list(spec.shape)}"
            )
    contents = values.get(spec.name)
    if contents is not None:
        _check_values(spec, shape, contents)


def _check_values(spec: TensorSpec, shape: tuple[int, ...], values: tuple[int, ...]) -> None:
    count = math.prod(shape)
    if len(values) != count:
        raise InputError(
            f"input {spec.name!r}: given {len(values)} values, expected {count} for its shape "
            f"{list(shape)}"
        )
    kind = to_numpy_dtype(spec.dtype)
    if kind.kind in "iu" and not all(
        np.iinfo(kind.name).min <= value <= np.iinfo(kind.name).max for value in values
    ):
        raise InputError(
            f"input {spec.name!r}: given values {list(values)}, expected {spec.dtype.label}"
        )
