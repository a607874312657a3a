"""The noise floor: what rounding alone does to the same outputs, measured on the same samples.

A tolerance says what is acceptable; it cannot tell rounding from a bug, for a weight that is off by
1 % moves an output less than a bad but honest FP16 run of another model. So a third model runs
beside reference and candidate, whose only fault is rounding. There are two kinds of it:

*Expectation* (``expect_emulation``), the better one: the unmodified reference, typed by the same
recipe and emulated, every stored tensor rounded. Its error has the size, the place and the pattern
that rounding has in *this* network. It is one honest outcome among many, for an engine adds up in
another order and fuses layers, so a candidate is not compared with its values but with its
statistics (``noise_figures``). Only when the candidate is emulated from the same plan on the same
machine must both agree in every bit (``same_arithmetic``).

*Rounded inputs* (``round_inputs``), when the recipe cannot be emulated: the FP32 reference run on
inputs rounded to the narrow type, and on inputs moved at random by up to half a unit in the last
place. It needs no second model, says nothing where all inputs are integers, and sees one rounding
where the network has L of them. Independent errors add up as sqrt(L) (N. J. Higham and T. Mary, A
New Approach to Probabilistic Rounding Error Analysis, SIAM J. Sci. Comput. 41(5), 2019), so that
the floor is sqrt(L) times the measured one and the pattern of the errors is not judged. For an FP32
candidate the same, with FP32's unit, is what a reordered FP32 run does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from trtdeploy.config.recipe import Recipe
from trtdeploy.core.arrays import Array, Feeds, Outputs, Runner
from trtdeploy.core.number_formats import Rounding
from trtdeploy.parity.slices import is_float

ASSUMED_ROUNDINGS = 64
"""Roundings on the longest path of a network when nobody counts them."""


@dataclass(frozen=True)
class NoiseSource:
    """A model that errs by rounding only.

    Attributes:
        runs: One or more honest outcomes for the same feeds.
        name: For people: ``emulated fp16 of the reference``.
        rounding: Of the outputs; what stays below it is never called an error.
        headroom: Factor on the measured error.
        has_pattern: The errors have the pattern of the candidate's, not only the size.
        same_arithmetic: An honest candidate gives the same bits as the first of ``runs``.
    """

    runs: tuple[Runner, ...]
    name: str
    rounding: Rounding
    headroom: float = 1.0
    has_pattern: bool = True
    same_arithmetic: bool = False


def expect_emulation(run: Runner, recipe: Recipe, *, same_arithmetic: bool = False) -> NoiseSource:
    """Use the unmodified reference, typed by ``recipe`` and emulated, as the expectation.

    Args:
        run: Runs the emulated model.
        recipe: Names the expectation, and says how its outputs are rounded.
        same_arithmetic: The candidate is emulated too, by the same code from the same precision
            plan, so that every bit must agree.
    """
    name = f"emulated {recipe.name} of the unmodified reference"
    return NoiseSource((run,), name, recipe.output_rounding, same_arithmetic=same_arithmetic)


def round_inputs(
    reference: Runner, recipe: Recipe, *, roundings: int = ASSUMED_ROUNDINGS, seeds: int = 2
) -> NoiseSource:
    """Use the FP32 reference on rounded and on slightly moved inputs.

    Args:
        reference: Is run on the changed inputs.
        recipe: Tells how coarsely inputs and outputs are rounded.
        roundings: Tensors that are rounded on the longest path through the network.
        seeds: How many randomly moved runs there are beside the rounded one.
    """
    unit = recipe.input_rounding.unit
    moved = [_on_changed_inputs(reference, _move(unit, seed)) for seed in range(seeds)]
    rounded = _on_changed_inputs(reference, lambda array: round_values(array, unit))
    name = f"inputs rounded as {recipe.name} would, times sqrt({roundings}) for the layers"
    return NoiseSource(
        (rounded, *moved),
        name,
        recipe.output_rounding,
        headroom=math.sqrt(roundings),
        has_pattern=False,
    )


def round_values(array: Array, unit: float) -> Array:
    """Return an array rounded to nearest even with relative error up to ``unit``, in its own type.

    Overflow and subnormals are left out: they are for the emulation to show.

    Args:
        array: Floating point.
        unit: A power of two.
    """
    significand, exponent = np.frexp(array.astype(np.float64))
    # frexp's significand is in [0.5, 1), where numbers of that unit are ``unit`` apart.
    rounded = np.ldexp(np.rint(significand / unit) * unit, exponent)
    # of a scalar, numpy makes a number that is no array
    return np.asarray(rounded).astype(array.dtype)


def _move(unit: float, seed: int) -> Callable[[Array], Array]:
    def move(array: Array) -> Array:
        shift = np.random.default_rng(seed).uniform(-unit, unit, array.shape)
        return np.asarray(array * (1.0 + shift)).astype(array.dtype)

    return move


def _on_changed_inputs(run: Runner, change: Callable[[Array], Array]) -> Runner:
    def run_changed(feeds: Feeds) -> Outputs:
        return run({name: change(a) if is_float(a) else a for name, a in feeds.items()})

    return run_changed
