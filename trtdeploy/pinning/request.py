"""What a search for pins is asked."""

from __future__ import annotations

from dataclasses import dataclass

from trtdeploy.config.recipe import Recipe
from trtdeploy.core.errors import UsageError
from trtdeploy.pinning.search import SEARCH_RUNS
from trtdeploy.pinning.target import Target, parse_target
from trtdeploy.precision.typing_source import TypingRequest

DEFAULT_SAMPLES = 8
DEFAULT_RUNS = 300


@dataclass(frozen=True)
class PinRequest(TypingRequest):
    """What ``trtdeploy pin`` is asked.

    Outputs are compared on ``data``; None takes some of the calibration, else makes them up.

    Attributes:
        target: As ``parse_target`` reads it; empty for the recipe's parity tolerance.
        metric: Task metric that decides instead; needs ``data`` with labels.
        max_drop: How far it may fall.
        samples: How many are compared, labelled ones aside, all of which are.
        most_runs: How often the model is measured at most.
    """

    target: str = ""
    metric: str = ""
    max_drop: float = 0.0
    samples: int = DEFAULT_SAMPLES
    most_runs: int = DEFAULT_RUNS


def read_target(request: PinRequest, recipe: Recipe) -> Target | None:
    """Return the target, or None when a task metric decides."""
    if recipe.quantized is None and recipe.low is None:
        raise UsageError(
            f"recipe {recipe.name} narrows nothing: there is nothing to pin",
            hint="Choose a deploy profile with fp16, bf16, int8 or fp8.",
        )
    if request.most_runs <= SEARCH_RUNS or request.samples < 1:
        raise UsageError(
            f"the search needs at least 1 sample and {SEARCH_RUNS + 1} runs, given "
            f"{request.samples} and {request.most_runs}"
        )
    if not request.metric:
        return parse_target(request.target)
    if request.target or request.data is None:
        raise UsageError(
            "a metric needs --data with an array 'labels', and is a target of its own",
            hint="Give either --target or --metric with --data.",
        )
    return None
