"""Field types of ``report.json``: bounded numbers, and text that is safe wherever it is shown."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

_LARGEST = 2**63 - 1
_UNSAFE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff]"
)
"""Control characters (a terminal obeys them, XML 1.0 forbids them) and those that reorder text."""


def replace_controls(text: str) -> str:
    """Return ``text`` with U+FFFD in place of every control character but tab and line feed."""
    return _UNSAFE.sub("\ufffd", text)


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
