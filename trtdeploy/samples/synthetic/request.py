"""What is known about an input that is to be made up."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trtdeploy.config.axis_roles import find_dynamic_axes
from trtdeploy.core.dtypes import DType
from trtdeploy.core.tensors import TensorSpec
from trtdeploy.samples.synthetic.uses import InputUses

_IMAGE_RANK = 4
_IMAGE_CHANNELS = (1, 3)
_INTEGER_TYPES = frozenset(
    {
        DType.UINT8, DType.INT8, DType.UINT16, DType.INT16, DType.INT32, DType.INT64, DType.UINT32,
        DType.UINT64, DType.UINT4, DType.INT4, DType.UINT2, DType.INT2,
    }
)  # fmt: skip
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


@dataclass(frozen=True)
class OtherInputs:
    """What the other inputs say about sizes.

    Attributes:
        image_size: Height and width of the first image input; None without one.
        sequence_length: Size of the first sequence axis; None without one.
    """

    image_size: tuple[int, int] | None
    sequence_length: int | None


@dataclass(frozen=True)
class InputRequest:
    """An input to make up.

    Attributes:
        spec: Name, type, declared shape.
        values: Contents that the optimization profile gives; None when it gives none.
        uses: What the model does with the values.
        others: Sizes of other inputs.
        rng: Randomness of this input alone.
    """

    spec: TensorSpec
    shape: tuple[int, ...]
    values: tuple[int, ...] | None
    uses: InputUses
    others: OtherInputs
    rng: np.random.Generator

    @property
    def is_integer(self) -> bool:
        """True for whole numbers, booleans not among them."""
        return self.spec.dtype in _INTEGER_TYPES

    @property
    def is_bool(self) -> bool:
        """True for booleans."""
        return self.spec.dtype is DType.BOOL

    @property
    def is_float(self) -> bool:
        """True for real and complex numbers of any width."""
        return not (self.is_integer or self.is_bool or self.spec.dtype is DType.STRING)

    @property
    def words(self) -> frozenset[str]:
        """Lower-case words of the name: ``inputLengths:0`` has input and lengths."""
        return frozenset(word.lower() for word in _WORD.findall(self.spec.name))

    @property
    def largest(self) -> int:
        """Largest whole number that the type holds exactly, as far as anyone needs it."""
        if not self.is_integer:
            return 2**24
        is_signed = not self.spec.dtype.label.startswith("u")
        return int(2 ** min(self.spec.dtype.bits - is_signed, 63) - 1)


def find_channel_axis(spec: TensorSpec) -> int | None:
    """Return the channel axis of an input that looks like a batch of images: 1 or 3."""
    if spec.shape is None or len(spec.shape) != _IMAGE_RANK:
        return None
    return next((axis for axis in (1, 3) if spec.shape[axis] in _IMAGE_CHANNELS), None)


def describe_other_inputs(
    inputs: Sequence[TensorSpec], shapes: Mapping[str, tuple[int, ...]]
) -> OtherInputs:
    """Return the sizes that other inputs may have to agree with."""
    image_size = None
    for spec in inputs:
        axis = find_channel_axis(spec)
        if axis is not None:
            height, width = [d for i, d in enumerate(shapes[spec.name]) if i not in (0, axis)]
            image_size = (height, width)
            break
    sequences = [axis.places[0] for axis in find_dynamic_axes(inputs) if axis.role == "sequence"]
    lengths = [shapes[place.input_name][place.axis] for place in sequences]
    return OtherInputs(image_size, lengths[0] if lengths else None)
