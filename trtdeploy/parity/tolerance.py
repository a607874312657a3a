"""How far an output may be off: by recipe, by what the output is, or as the deploy profile says.

The tolerance is about use ("is this close enough?"), the noise floor (``noise``) about cause ("is
this rounding?"). What a recipe allows is a field of it (``config.recipe``), and the profile's
``parity.atol`` and ``parity.rtol`` replace that.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from enum import Enum

import numpy as np

from trtdeploy.config.recipe import Recipe
from trtdeploy.core.arrays import Array
from trtdeploy.parity.result import Tolerance
from trtdeploy.parity.slices import is_float, iterate_chunks

RAISE_FACTOR = 2.0
MOST_RAISED = 5.0
LEAST_CLOSE_FRACTION = 0.75

ToleranceProvider = Callable[[str, Array], Tolerance]
"""Gives the tolerance of an output, from its name and a first sample of the reference."""


class OutputKind(Enum):
    """What an output seems to hold, as far as name and values tell.

    Attributes:
        EXACT: Integers, booleans, text: counts and labels.
        PROBABILITIES: Within [0, 1] and named so, or with rows that add up to 1.
        LOGITS: Named so.
        BOXES: Named like coordinates.
        EMBEDDINGS: Named like features or hidden states.
        GENERIC: Anything else.
    """

    EXACT = "exact values"
    PROBABILITIES = "probabilities"
    LOGITS = "logits"
    BOXES = "boxes"
    EMBEDDINGS = "embeddings"
    GENERIC = "values"


_NAME_HINTS = {
    OutputKind.PROBABILITIES: {"prob", "probs", "probability", "probabilities", "softmax",
                               "score", "scores", "confidence", "sigmoid"},
    OutputKind.LOGITS: {"logit", "logits"},
    OutputKind.BOXES: {"box", "boxes", "bbox", "bboxes", "coord", "coords", "location", "loc",
                       "regression", "keypoints", "landmarks"},
    OutputKind.EMBEDDINGS: {"embedding", "embeddings", "embed", "embeds", "feature", "features",
                            "hidden", "pooler", "pooled", "encoding"},
}  # fmt: skip
_MATRIX_RANK, _IMAGE_RANK = 2, 4
_SUM_SLACK = 1e-3


def find_kind(name: str, reference: Array) -> OutputKind:
    """Return what an output seems to hold; ``GENERIC`` when in doubt.

    Args:
        name: Hints at what the values are: ``class_scores``, ``boxes``.
        reference: One sample of the reference's output.
    """
    if not is_float(reference):
        return OutputKind.EXACT
    words = set(re.split(r"[^a-z]+", name.lower()))
    hinted = next((kind for kind, hints in _NAME_HINTS.items() if words & hints), None)
    if hinted is OutputKind.PROBABILITIES:
        return hinted if _is_within_unit(reference) else OutputKind.GENERIC
    if hinted is None and _is_distribution(reference):
        return OutputKind.PROBABILITIES
    return hinted or OutputKind.GENERIC


def find_class_axis(kind: OutputKind, shape: tuple[int, ...]) -> int | None:
    """Return the axis of class scores; None when an arg max would mean nothing.

    Scores of kind ``GENERIC`` are taken for classes in vectors and matrices (N x classes) and in
    maps (N x classes x H x W); a matrix per sample may be anything.
    """
    rank = len(shape)
    scores = kind in (OutputKind.PROBABILITIES, OutputKind.LOGITS)
    usual = kind is OutputKind.GENERIC and rank in (1, _MATRIX_RANK, _IMAGE_RANK)
    if rank == 0 or not (scores or usual):
        return None
    axis = 1 if rank >= _IMAGE_RANK else rank - 1
    return axis if shape[axis] > 1 else None


def make_tolerance_provider(
    recipe: Recipe, *, atol: float | None = None, rtol: float | None = None
) -> ToleranceProvider:
    """Return the tolerances of a recipe, or those of the deploy profile.

    Args:
        recipe: Its tolerances hold where the profile gives none.
        atol: ``parity.atol`` of the profile, in units of the output; None keeps the recipe's.
        rtol: ``parity.rtol`` of the profile, relative to each element; None keeps the recipe's.
    """

    def provide(name: str, reference: Array) -> Tolerance:
        kind = find_kind(name, reference)
        if kind is OutputKind.EXACT:
            return Tolerance(0.0, 0.0, None, scaled=False, origin="exact values must be equal")
        if atol is None and rtol is None:
            return make_recipe_tolerance(recipe, kind)
        return make_profile_tolerance(recipe, atol, rtol)

    return provide


def make_recipe_tolerance(recipe: Recipe, kind: OutputKind) -> Tolerance:
    """Return the tolerance of a recipe for one kind of output."""
    limit = recipe.relative_l2
    # Probabilities have a scale of their own; a class at 1e-5 of 1 need not be right to 2 %.
    scaled = kind is not OutputKind.PROBABILITIES
    origin = f"recipe {recipe.name}, {kind.value}"
    return Tolerance(limit, 0.0, limit, scaled, origin, close_fraction=recipe.close_fraction)


def make_profile_tolerance(recipe: Recipe, atol: float | None, rtol: float | None) -> Tolerance:
    """Return the tolerance a deploy profile asks for; every element must meet it.

    With ``atol`` alone nothing is relative; with ``rtol`` alone the recipe's share of the largest
    magnitude is kept, for nothing is relative to zero.
    """
    if atol is None:
        origin = f"profile parity.rtol, atol of recipe {recipe.name}"
        return Tolerance(recipe.relative_l2, rtol or 0.0, None, scaled=True, origin=origin)
    given = "profile parity.atol" if rtol is None else "profile parity.atol and parity.rtol"
    return Tolerance(atol, rtol or 0.0, None, scaled=False, origin=given)


def raise_tolerance(tolerance: Tolerance, noise_floor: float, close: float | None) -> Tolerance:
    """Return a recipe's tolerance, widened where rounding alone does nearly as much.

    The recipe's limit fits most models, but some amplify rounding more. Where an honest outcome
    was measured, twice its error is allowed (and twice its share of elements that are not close),
    up to five times the recipe's limit: what is beyond that is too far off, whatever the cause.

    Args:
        tolerance: Of the recipe; one of the deploy profile is returned as it is.
        noise_floor: Relative L2 error of the honest outcome.
        close: Its share of close elements; None when there are no elements.
    """
    limit = tolerance.relative_l2
    if limit is None:
        return tolerance
    raised = min(max(limit, RAISE_FACTOR * noise_floor), MOST_RAISED * limit)
    expected = 1.0 if close is None else 1.0 - RAISE_FACTOR * (1.0 - close)
    fraction = max(min(tolerance.close_fraction, expected), LEAST_CLOSE_FRACTION)
    if raised == limit and fraction == tolerance.close_fraction:
        return tolerance
    origin = f"{tolerance.origin}, raised to {RAISE_FACTOR:g} times the noise floor"
    return replace(tolerance, relative_l2=raised, close_fraction=fraction, origin=origin)


def _is_within_unit(reference: Array) -> bool:
    # NaN fails both comparisons, and an array with NaN is not taken for probabilities.
    return all(bool(((p >= 0) & (p <= 1)).all()) for _, (p,) in iterate_chunks(reference))


def _is_distribution(reference: Array) -> bool:
    if reference.ndim == 0 or reference.size == 0 or not _is_within_unit(reference):
        return False
    axis = 1 if reference.ndim >= _IMAGE_RANK else reference.ndim - 1
    if reference.shape[axis] == 1:
        return False
    sums = reference.sum(axis=axis, dtype=np.float64) if reference.dtype.kind == "f" else np.inf
    return bool(np.all(np.abs(sums - 1.0) <= _SUM_SLACK))
