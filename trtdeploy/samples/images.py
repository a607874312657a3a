"""A folder of images as samples of a model's only input. Needs Pillow.

Images are decoded, turned upright, brought to colour order and size.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from trtdeploy.config.batch_layout import BatchLayout
from trtdeploy.config.preprocessing import PreprocessingSection
from trtdeploy.core.arrays import Array
from trtdeploy.core.errors import InputError
from trtdeploy.core.optional import import_optional
from trtdeploy.core.tensors import TensorSpec, format_shape
from trtdeploy.graph.numpy_types import to_numpy_dtype
from trtdeploy.samples.pixels import ImageLayout, PixelScaling, find_image_layout
from trtdeploy.samples.source import Sample, SampleId, SampleSource, raise_problems

_NO_SECTION = (
    "the profile has no 'preprocessing:' section: {colour} pixels times 1/255, stretched to the "
    "input's size, were assumed"
)
IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".webp")
IMAGE_FORMATS = ("JPEG", "PNG", "BMP", "WEBP")
"""Pillow's names; it goes by content, and would start Ghostscript for EPS, whatever the suffix."""

# What Pillow's decoders raise for a damaged file; OSError covers "cannot identify" and "truncated".
_DAMAGE = (
    OSError, SyntaxError, ValueError, EOFError, IndexError, KeyError, TypeError, OverflowError,
    struct.error, zlib.error,
)  # fmt: skip
_DEEP_MODES = ("I", "F")  # first letters of Pillow's 16-bit, 32-bit and float modes


class ImageSource(SampleSource):
    """Image files, decoded one at a time."""

    def __init__(
        self,
        path: Path,
        files: Sequence[Path],
        inputs: Sequence[TensorSpec],
        batch_axes: BatchLayout,
        preprocessing: PreprocessingSection | None,
    ) -> None:
        """Check the model's input and the header of every file.

        Raises:
            InputError: The model takes no single image, the profile's size does not fit, or
                files are not images.
            MissingDependencyError: Pillow is not installed.
        """
        super().__init__(batch_axes)
        section = preprocessing or PreprocessingSection()
        self._spec, self._layout = _find_image_input(path, inputs, batch_axes, section)
        self._files = tuple(files)
        self._size = section.size
        self._dtype = to_numpy_dtype(self._spec.dtype)
        self._scaling = PixelScaling(section, self._layout.channel_axis)
        _check_section(self._spec, self._layout, section, is_float=self._dtype.kind == "f")
        self._reader = ImageReader(section, self._layout.channels)
        raise_problems([problem for file in files if (problem := self._reader.check(file))])
        self.description = f"{path} ({len(files)} image{'' if len(files) == 1 else 's'})"
        if preprocessing is None:
            colour = "gray" if self._layout.channels == 1 else "rgb"
            self.notes = (_NO_SECTION.format(colour=colour),)

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self._files)

    def _iterate_samples(self, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[Sample]:
        height, width = self._size or self._find_size(shapes[self._spec.name])
        for file in self._files:
            pixels = self._reader.read(file, height, width)
            yield Sample(SampleId(file), {self._spec.name: self._convert(pixels)})

    def _find_size(self, shape: tuple[int, ...]) -> tuple[int, int]:
        batch_axis = self._batch_axes.inputs.get(self._spec.name)
        dims = [dim for i, dim in enumerate(shape) if i != batch_axis]
        del dims[self._layout.channel_axis]
        return dims[0], dims[1]

    def _convert(self, pixels: Array) -> Array:
        ordered = pixels if self._layout.channel_axis else pixels.transpose(2, 0, 1)
        values = self._scaling.apply(ordered) if self._dtype.kind == "f" else ordered
        return np.ascontiguousarray(values.astype(self._dtype, copy=False))


def _find_image_input(
    path: Path,
    inputs: Sequence[TensorSpec],
    batch_axes: BatchLayout,
    section: PreprocessingSection,
) -> tuple[TensorSpec, ImageLayout]:
    listed = ", ".join(f"{s.name!r} {s.dtype.label} {format_shape(s.shape)}" for s in inputs)
    if len(inputs) == 1:
        layout = find_image_layout(inputs[0], batch_axes, section)
        kind = to_numpy_dtype(inputs[0].dtype)
        if layout is not None and (kind.kind == "f" or kind == np.uint8):
            return inputs[0], layout
    raise InputError(
        f"{path} holds images, expected for a model whose only input is a float or uint8 image of "
        f"1 or 3 channels; the model takes {listed}",
        hint="Give .npz files with one array per input, or say where the channels are: "
        "'preprocessing: {layout: nchw}'.",
    )


def _check_section(
    spec: TensorSpec, layout: ImageLayout, section: PreprocessingSection, *, is_float: bool
) -> None:
    """Refuse a section that contradicts the input."""
    problems = []
    if section.size is not None:
        for axis, wanted, given in zip(
            ("height", "width"), (layout.height, layout.width), section.size, strict=True
        ):
            if isinstance(wanted, int) and wanted != given:
                problems.append(f"size: given {axis} {given}, expected {wanted}")
    if (section.colour == "gray") != (layout.channels == 1) and section.colour != "auto":
        problems.append(f"colour: given {section.colour}, expected {layout.channels} channels")
    for key, values in (("mean", section.mean), ("std", section.std)):
        if len(values) not in (1, layout.channels):
            problems.append(f"{key}: given {len(values)} values, expected {layout.channels}")
    if not is_float and (set(section.mean) != {0.0} or set(section.std) != {1.0}):
        problems.append(f"mean and std: given for {spec.dtype.label} pixels, expected none")
    raise_problems([f"preprocessing of input {spec.name!r}: {problem}" for problem in problems])


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
