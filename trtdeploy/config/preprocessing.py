"""How an image file becomes an input: the ``preprocessing:`` section of a deploy profile."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, model_validator

from trtdeploy.config.model_base import ConfigModel, WholeNumber

FROM_SHAPE: Final = "from shape"

_FRACTION: Final = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*/\s*(\d+(?:\.\d+)?)\s*$")


def _read_size(value: object) -> object:
    if value == FROM_SHAPE:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return (value, value)
    if value is None or isinstance(value, list | tuple):
        return value
    raise ValueError(
        f"expected [height, width], one number for both, or {FROM_SHAPE!r}, given {value!r}"
    )


def _write_size(value: tuple[int, int] | None) -> object:
    return FROM_SHAPE if value is None else list(value)


def _read_scale(value: object) -> object:
    if not isinstance(value, str):
        return value
    match = _FRACTION.match(value)
    if match is None or not float(match.group(2)):
        raise ValueError(f"expected a number or a fraction like 1/255, given {value!r}")
    return float(match.group(1)) / float(match.group(2))


def _read_channels(value: object) -> object:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return (value,) if is_number else value


Pixels = Annotated[WholeNumber, Field(ge=1, le=1 << 16)]
ImageSize = Annotated[
    tuple[Pixels, Pixels] | None,
    BeforeValidator(_read_size),
    PlainSerializer(_write_size),
]
"""Height and width; None, spelt ``from shape``, takes those of the optimization profile."""

Scale = Annotated[
    float, BeforeValidator(_read_scale), Field(strict=True, gt=0, allow_inf_nan=False)
]
"""A positive factor; ``1/255`` may be written as such."""

_Finite = Annotated[float, Field(strict=True, allow_inf_nan=False)]
_Positive = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
Means = Annotated[tuple[_Finite, ...], BeforeValidator(_read_channels)]
Deviations = Annotated[tuple[_Positive, ...], BeforeValidator(_read_channels)]
"""One number for all channels, or one per channel."""

_CHANNELS: Final = {"rgb": 3, "bgr": 3, "gray": 1}


class PreprocessingSection(ConfigModel):
    """What is done to an image file before the model sees it, in this order.

    Decode, turn upright (EXIF), ``colour``, ``resize`` to ``size``, then
    ``(pixel * scale - mean) / std`` per channel, then ``layout``. Pixels count from 0 to 255. An
    integer input takes the pixels as they are.

    Attributes:
        size: Height and width; ``from shape`` takes those of the optimization profile.
        layout: Order of the axes; ``auto`` looks where the model has 1 or 3 channels.
        colour: Order of the channels; ``auto`` is rgb for 3 channels and gray for 1.
        scale: Factor on every pixel; ``1/255`` may be written as such.
        mean: Subtracted after ``scale``: one number, or one per channel in ``colour`` order.
        std: Divided by after ``mean``.
        resize: ``stretch`` changes the aspect ratio, ``letterbox`` keeps it and pads both sides.
        pad: Pixel value of the letterbox bars.
        interpolation: Of the resize; all but ``nearest`` smooth when they shrink (Pillow's).
    """

    size: ImageSize = None
    layout: Literal["auto", "nchw", "nhwc"] = "auto"
    colour: Literal["auto", "rgb", "bgr", "gray"] = "auto"
    scale: Scale = 1 / 255
    mean: Means = (0.0,)
    std: Deviations = (1.0,)
    resize: Literal["stretch", "letterbox"] = "stretch"
    pad: Annotated[WholeNumber, Field(ge=0, le=255)] = 114
    interpolation: Literal["nearest", "bilinear", "bicubic", "lanczos", "box"] = "bilinear"

    @model_validator(mode="after")
    def _channels_agree(self) -> PreprocessingSection:
        counts = {"mean": len(self.mean), "std": len(self.std)}
        wanted = _CHANNELS.get(self.colour)
        for key, count in counts.items():
            if count not in ((1, 3) if wanted is None else (1, wanted)):
                expected = "1 or 3" if wanted in (None, 3) else "1"
                raise ValueError(
                    f"{key} has {count} values; expected {expected} with colour {self.colour!r}"
                )
        return self
