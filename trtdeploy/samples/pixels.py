"""Where an image input has its channels, and the arithmetic that turns pixels into its values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from trtdeploy.config.batch_layout import BatchLayout
from trtdeploy.config.preprocessing import PreprocessingSection
from trtdeploy.core.arrays import Array
from trtdeploy.core.tensors import Dim, TensorSpec

_RANK: Final = 3
_CHANNELS: Final = (1, 3)
_AXES: Final = {"nchw": 0, "nhwc": 2}


@dataclass(frozen=True)
class ImageLayout:
    """How one image lies in an input, the batch axis left out.

    Attributes:
        channel_axis: 0 (CxHxW) or 2 (HxWxC).
        channels: 1 or 3.
        height: Size of the input's height, a symbol when it is free.
        width: Size of the input's width, a symbol when it is free.
    """

    channel_axis: int
    channels: int
    height: Dim
    width: Dim


def find_image_layout(
    spec: TensorSpec, batch_axes: BatchLayout, preprocessing: PreprocessingSection
) -> ImageLayout | None:
    """Return how images lie in an input; None when it takes none."""
    batch_axis = batch_axes.inputs.get(spec.name)
    dims = [dim for i, dim in enumerate(spec.shape or ()) if i != batch_axis]
    if len(dims) != _RANK:
        return None
    for name, axis in _AXES.items():
        channels = dims[axis]
        if preprocessing.layout not in ("auto", name):
            continue
        if isinstance(channels, str) and preprocessing.layout == name:
            channels = 1 if preprocessing.colour == "gray" else 3
        if channels in _CHANNELS and isinstance(channels, int):
            height, width = dims[:axis] + dims[axis + 1 :]
            return ImageLayout(axis, channels, height, width)
    return None


@dataclass(frozen=True)
class PixelScaling:
    """Computes ``(pixel * scale - mean) / std`` in FP32.

    Attributes:
        preprocessing: Where scale, mean and std come from.
        channel_axis: 0 (CxHxW) or 2 (HxWxC): samples have no batch axis.
    """

    preprocessing: PreprocessingSection
    channel_axis: int

    def apply(self, pixels: Array) -> Array:
        """Return one image's values (float32) from its pixels (0 to 255)."""
        section = self.preprocessing
        shape = [1] * pixels.ndim
        shape[self.channel_axis] = -1
        mean = np.asarray(section.mean, np.float32).reshape(shape)
        std = np.asarray(section.std, np.float32).reshape(shape)
        values = pixels.astype(np.float32)
        values *= np.float32(section.scale)
        values -= mean
        values /= std
        return values
