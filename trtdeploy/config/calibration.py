"""How amax is chosen: the ``calibration:`` section of a deploy profile."""

from __future__ import annotations

from typing import Annotated, Final, Literal, get_args

from pydantic import Field, StringConstraints

from trtdeploy.config.model_base import ConfigModel

CalibrationMethod = Literal["minmax", "percentile", "entropy", "mse"]

CALIBRATION_METHODS: Final[tuple[CalibrationMethod, ...]] = get_args(CalibrationMethod)

_Pattern = Annotated[str, StringConstraints(min_length=1)]


class CalibrationSection(ConfigModel):
    """How a quantized tensor's amax follows from what calibration saw.

    Attributes:
        method: For every tensor; None takes the recipe's own.
        methods: Another method for the tensors whose name matches a pattern.
        percentile: Share of magnitudes, in percent, that method ``percentile`` keeps.
        nonfinite: ``error`` stops at a sample with NaN or infinity, ``skip`` leaves it out.
    """

    method: CalibrationMethod | None = None
    methods: dict[_Pattern, CalibrationMethod] = Field(default_factory=dict)
    percentile: float = Field(default=99.99, gt=0, le=100, allow_inf_nan=False)
    nonfinite: Literal["error", "skip"] = "error"
