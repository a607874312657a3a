"""Sizes as people write them: per symbol, per input, and values of shape tensors."""

from __future__ import annotations

from typing import NamedTuple

from pydantic import Field, field_validator, model_validator

from trtdeploy.config.model_base import ConfigModel, Flag, WholeNumber

LARGEST_SIZE = 2**31 - 1
"""TensorRT 8.6 keeps dimensions in 32 bits."""


class AxisRange(NamedTuple):
    """Smallest, usual and largest size of one axis."""

    min: int
    opt: int
    max: int

    def __str__(self) -> str:
        """Return ``1/4/8``."""
        return f"{self.min}/{self.opt}/{self.max}"


class AxisSizes(ConfigModel):
    """Sizes of one axis; ``4`` alone stands for ``{min: 4, opt: 4, max: 4}``.

    A point that is left out is derived (``axis_defaults.complete_sizes``).
    """

    min: WholeNumber | None = None
    opt: WholeNumber | None = None
    max: WholeNumber | None = None

    @model_validator(mode="before")
    @classmethod
    def _accept_one_number(cls, value: object) -> object:
        if isinstance(value, int) and not isinstance(value, bool):
            return {"min": value, "opt": value, "max": value}
        if isinstance(value, dict) and not value:
            raise ValueError("no size given: write a number or {min: 1, opt: 4, max: 8}")
        return value


class TensorSizes(ConfigModel):
    """Shape of one input, or contents of one shape tensor, at min, opt and max.

    All three are needed in the end; a missing one is reported with the model at hand.
    """

    min: tuple[WholeNumber, ...] | None = None
    opt: tuple[WholeNumber, ...] | None = None
    max: tuple[WholeNumber, ...] | None = None

    @field_validator("min", "opt", "max", mode="before")
    @classmethod
    def _accept_one_number(cls, value: object) -> object:
        return (value,) if isinstance(value, int) and not isinstance(value, bool) else value


class ShapeTable(ConfigModel):
    """One set of statements about sizes.

    Attributes:
        symbols: Symbol (or role: batch, height, width, sequence) to its sizes.
        inputs: Input name to its whole shape.
        values: Shape-tensor name to its contents, row-major.
    """

    symbols: dict[str, AxisSizes] = Field(default_factory=dict)
    inputs: dict[str, TensorSizes] = Field(default_factory=dict)
    values: dict[str, TensorSizes] = Field(default_factory=dict)


class NamedShapeTable(ShapeTable):
    """One entry of ``optimization_profiles``; it overrides what ``shapes`` says."""

    name: str | None = None


class AxisDefaults(ConfigModel):
    """Sizes assumed for axes that nobody mentions, by the role of the axis."""

    batch: AxisSizes | None = None
    height: AxisSizes | None = None
    width: AxisSizes | None = None
    sequence: AxisSizes | None = None
    other: AxisSizes | None = None


class ShapesSection(ShapeTable):
    """``shapes:`` of a deploy profile: statements, and what to assume where there are none.

    Attributes:
        defaults: Assumed sizes by role; never an error when the model has no such axis.
        allow_zero: Accept sizes of 0 (empty tensors), which most models cannot run.
    """

    defaults: AxisDefaults = AxisDefaults()
    allow_zero: Flag = False
