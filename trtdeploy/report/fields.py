"""Field types of ``report.json``: bounded numbers, and text that is safe wherever it is shown."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from trtdeploy.report.json_document import replace_controls

_LARGEST = 2**63 - 1


class ReportModel(BaseModel):
    """Base of everything in a report: immutable, no conversion between types.

    Keys that it does not know are left alone: a later trtdeploy may add some without a new
    schema version. The version changes when a key goes away or changes its meaning.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")


Text = Annotated[str, AfterValidator(replace_controls)]
Integer = Annotated[int, Field(ge=-_LARGEST - 1, le=_LARGEST)]
Count = Annotated[int, Field(ge=0, le=_LARGEST)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

Shape = tuple[Integer | Text, ...]
"""Symbolic dimensions are texts."""

Sizes = tuple[Integer, ...]
"""Sizes of a tensor that was run, or values of a shape tensor."""
