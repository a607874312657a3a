"""A folder of images as samples of a model's only input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from trtdeploy.config.batch_layout import BatchLayout
from trtdeploy.config.preprocessing import PreprocessingSection
from trtdeploy.core.arrays import Array
from trtdeploy.core.errors import InputError
from trtdeploy.core.tensors import TensorSpec, format_shape
from trtdeploy.graph.numpy_types import to_numpy_dtype
from trtdeploy.samples.image_files import ImageReader
from trtdeploy.samples.pixels import ImageLayout, PixelScaling, find_image_layout
from trtdeploy.samples.problems import raise_problems
from trtdeploy.samples.source import Sample, SampleId, SampleSource

_NO_SECTION = (
    "the profile has no 'preprocessing:' section: {colour} pixels times 1/255, stretched to the "
    "input's size, were assumed"
)


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
