"""The strict base of every configuration model, and the field types they share."""

from __future__ import annotations

import re
from typing import Annotated, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    model_validator,
)

from trtdeploy.core.units import parse_bytes

SMALLEST_SIZE_BYTES = 1 << 20
"""Below this a byte size is a forgotten unit: ``workspace: 4`` was meant as 4GiB."""
LARGEST_SIZE_BYTES = 2**63 - 1
_EXPONENT = re.compile(r"^[+-]?[0-9]+(\.[0-9]*)?[eE][+-]?[0-9]+$")


class ConfigModel(BaseModel):
    """Base of all configuration: immutable, and a key it does not know is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _read_null_as_unset(cls, data: object) -> object:
        # "build:" with every line below it commented out is null in YAML, and means nothing set.
        if not isinstance(data, dict):
            return data
        unset = {
            name
            for name, field in cls.model_fields.items()
            if name in data and data[name] is None and type(None) not in get_args(field.annotation)
        }
        return {key: value for key, value in data.items() if key not in unset}


def _read_byte_size(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, str | int):
        # pydantic collects ValueError and lets TypeError through.
        raise ValueError(  # noqa: TRY004
            f"{value!r} is not a byte size; write it like 512MiB, 1GiB or 2GB"
        )
    try:
        size = parse_bytes(value)
    except OverflowError:
        size = LARGEST_SIZE_BYTES + 1
    if size > LARGEST_SIZE_BYTES:
        raise ValueError("this is more memory than any device has")
    if size < SMALLEST_SIZE_BYTES:
        raise ValueError(f"{value!r} is less than 1MiB; write the unit, like 512MiB or {value}GiB")
    return size


def _read_compute_capability(value: object) -> object:
    # YAML reads an unquoted 8.9 as a float and 12 as an int; both are meant.
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:.1f}"
    return value


def _read_exponent(value: object) -> object:
    # YAML 1.1 reads 1e-3 as text and 1.0e-3 as a number; both are meant.
    return float(value) if isinstance(value, str) and _EXPONENT.match(value) else value


ByteSize = Annotated[int, BeforeValidator(_read_byte_size)]
"""Bytes; read from ``512MiB``, ``1GiB``, ``2GB`` or a plain integer, at least 1 MiB."""

ComputeCapability = Annotated[
    str, BeforeValidator(_read_compute_capability), Field(pattern=r"^[0-9]{1,2}\.[0-9]$")
]
"""``MAJOR.MINOR`` as text, e.g. ``8.9``; ``12.0`` must not become ``12``."""

Flag = StrictBool
WholeNumber = StrictInt
PositiveFloat = Annotated[
    float, Field(strict=True, gt=0, allow_inf_nan=False), BeforeValidator(_read_exponent)
]
Tolerance = Annotated[
    float, Field(strict=True, ge=0, allow_inf_nan=False), BeforeValidator(_read_exponent)
]
