"""Image files: decoded, turned upright, brought to colour order and size. Needs Pillow."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from trtdeploy.config.preprocessing import PreprocessingSection
from trtdeploy.core.arrays import Array
from trtdeploy.core.errors import InputError
from trtdeploy.core.optional import import_optional

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".webp")
IMAGE_FORMATS = ("JPEG", "PNG", "BMP", "WEBP")
"""Pillow's names; it goes by content, and would start Ghostscript for EPS, whatever the suffix."""

# What Pillow's decoders raise for a damaged file; OSError covers "cannot identify" and "truncated".
_DAMAGE = (
    OSError, SyntaxError, ValueError, EOFError, IndexError, KeyError, TypeError, OverflowError,
    struct.error, zlib.error,
)  # fmt: skip
_DEEP_MODES = ("I", "F")  # first letters of Pillow's 16-bit, 32-bit and float modes


class ImageReader:
    """Reads image files as one preprocessing section says, up to but without the arithmetic."""

    def __init__(self, preprocessing: PreprocessingSection, channels: int) -> None:
        """Prepare to read images of 1 or 3 channels.

        Raises:
            MissingDependencyError: Pillow is not installed.
        """
        self._image = _import_pillow("PIL.Image")
        self._unidentified = _import_pillow("PIL").UnidentifiedImageError
        self._ops = _import_pillow("PIL.ImageOps")
        self._preprocessing = preprocessing
        self._mode = "L" if channels == 1 else "RGB"
        self._is_reversed = channels != 1 and preprocessing.colour == "bgr"
        resampling = self._image.Resampling
        self._filter = getattr(resampling, preprocessing.interpolation.upper())

    def check(self, path: Path) -> str:
        """Return what is wrong with a file as far as its header tells; empty when nothing is."""
        try:
            with self._open(path) as image:
                return _find_deep_mode(path, image)
        except InputError as error:
            return error.message

    def read(self, path: Path, height: int, width: int) -> Array:
        """Return an image as uint8, height x width x channels.

        Raises:
            InputError: The file is damaged, or has more than 8 bits per channel.
        """
        with self._open(path) as image:
            deep = _find_deep_mode(path, image)
            if deep:
                raise InputError(deep)
            upright = self._ops.exif_transpose(image).convert(self._mode)
            pixels = np.asarray(self._resize(upright, height, width))
        if pixels.ndim == 2:  # noqa: PLR2004 - a gray image comes without a channel axis
            pixels = pixels[..., None]
        return pixels[..., ::-1] if self._is_reversed else pixels

    def _resize(self, image: Any, height: int, width: int) -> Any:
        if self._preprocessing.resize == "stretch":
            return image.resize((width, height), self._filter)
        factor = min(height / image.height, width / image.width)
        inner = (
            max(min(round(image.width * factor), width), 1),
            max(min(round(image.height * factor), height), 1),
        )
        pad = self._preprocessing.pad
        colour = pad if self._mode == "L" else (pad, pad, pad)
        canvas = self._image.new(self._mode, (width, height), colour)
        corner = ((width - inner[0]) // 2, (height - inner[1]) // 2)
        canvas.paste(image.resize(inner, self._filter), corner)
        return canvas

    @contextmanager
    def _open(self, path: Path) -> Iterator[Any]:
        """Open one image, and name the file whatever fails while it is open."""
        try:
            with self._image.open(path, formats=IMAGE_FORMATS) as image:
                yield image
        except self._unidentified as error:
            raise InputError(
                f"{path} cannot be read as an image: it is none of {', '.join(IMAGE_FORMATS)}",
                hint="Convert the file, or remove it from the folder.",
            ) from error
        except (*_DAMAGE, self._image.DecompressionBombError) as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise InputError(
                f"{path} cannot be read as an image: {reason}",
                hint="Remove the file from the folder, or replace it.",
            ) from error


def _import_pillow(module: str) -> ModuleType:
    return import_optional(module, needed_for="reading images", install="pip install pillow")


def _find_deep_mode(path: Path, image: Any) -> str:
    if not str(image.mode).startswith(_DEEP_MODES):
        return ""
    return f"{path}: given pixels of mode {image.mode!r}, expected 8 bits per channel"
