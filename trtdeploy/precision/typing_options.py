"""What a recipe is applied with: everything that decides how a model is typed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from trtdeploy.config.recipe import Recipe, find_recipe, make_weak_recipe
from trtdeploy.core.dtypes import DType

if TYPE_CHECKING:
    from trtdeploy.config.deploy_profile import DeployProfile


@dataclass(frozen=True)
class TypingOptions:
    """How a model is typed.

    Attributes:
        recipe: What to aim for; from ``make_weak_recipe`` for a weakly typed network.
        pins: What is wanted for single nodes (see ``trtdeploy.precision.pins``).
        ranges: Largest magnitude by value from an FP32 run of the same file; None when nothing was
            measured.
        amax: Clipping magnitude by value of ``plan_quantization(...).measured``, from calibration
            of ``prepare_for_quantization(model, recipe)``; None when not known, or nothing is
            quantized.
        io: ``keep`` leaves inputs and outputs FP32, ``recipe`` gives them the narrow type.
    """

    recipe: Recipe
    pins: tuple[str, ...] = ()
    ranges: Mapping[str, float] | None = None
    amax: Mapping[str, float] | None = None
    io: Literal["keep", "recipe"] = "keep"

    @classmethod
    def from_profile(
        cls,
        profile: DeployProfile,
        pins: Sequence[str] = (),
        amax: Mapping[str, float] | None = None,
    ) -> TypingOptions:
        """Return what a deploy profile asks for, in the form that its kind of typing needs.

        Args:
            profile: Names recipe and pins.
            pins: On top of those of the profile.
            amax: Of an earlier calibration.

        Raises:
            NotPossibleError: There is no such recipe, or it needs a strongly typed network.
        """
        recipe, precision = find_recipe(profile.recipe), profile.precision
        return cls(
            make_weak_recipe(recipe) if profile.typing == "weak" else recipe,
            (*precision.list_pins(), *pins),
            amax=amax,
            io=precision.io,
        )

    @property
    def border_dtype(self) -> DType | None:
        """The type that takes FP32's place in inputs and outputs; None when they keep theirs."""
        return None if self.io == "keep" or self.recipe.weak else self.recipe.low

    @property
    def can_repeat(self) -> bool:
        """True when the recipe narrows something, and all that it needs to do so is known."""
        if self.recipe.quantized is not None:
            return self.amax is not None
        return self.recipe.low is not None

    def add_pins(self, pins: Sequence[str]) -> TypingOptions:
        """Return the options with more pins."""
        return replace(self, pins=(*self.pins, *pins))
