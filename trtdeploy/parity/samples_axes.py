"""Which axis of an input counts samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from onnx import helper

from trtdeploy.config.axis_roles import DynamicAxis, find_dynamic_axes, find_role_by_name
from trtdeploy.core.dtypes import DType
from trtdeploy.core.errors import UsageError
from trtdeploy.core.tensors import TensorSpec

_IMAGE_RANK = 3
_IMAGE_CHANNELS = 3


@dataclass(frozen=True)
class BatchAxes:
    """Where samples are stacked.

    Attributes:
        axes: Axis by input; an input that is not listed is the same for a whole batch.
        fixed: The only batch size the model accepts; None when it is free.
    """

    axes: Mapping[str, int]
    fixed: int | None = None

    def find_batch_size(self, shapes: Mapping[str, tuple[int, ...]]) -> int:
        """Return how many samples ``shapes`` ask for; 1 when nothing is stacked.

        Raises:
            UsageError: The inputs are given different batch sizes.
        """
        sizes = {name: shapes[name][axis] for name, axis in self.axes.items()}
        if len(set(sizes.values())) > 1:
            listed = ", ".join(f"{name!r} {size}" for name, size in sizes.items())
            raise UsageError(
                f"samples cannot be stacked to batches of different sizes: {listed}",
                hint="Give every input the same batch size.",
            )
        return next(iter(sizes.values()), 1)


def find_batch_axes(inputs: Sequence[TensorSpec]) -> BatchAxes:
    """Find the axes that count samples.

    These are the dynamic axes whose name says so, wherever they are; without such a name, the
    dynamic first axes. A model without either has a fixed batch when all of its inputs begin with
    the same number (scalars aside); otherwise one sample is one run.
    """
    dynamic = [axis for axis in find_dynamic_axes(inputs) if axis.role == "batch"]
    named = [axis for axis in dynamic if _is_named_batch(axis)]
    axes: dict[str, int] = {}
    for dynamic_axis in named or dynamic:
        for place in dynamic_axis.places:
            axes.setdefault(place.input_name, place.axis)
    if axes:
        return BatchAxes(axes)
    ranked = [spec for spec in inputs if spec.shape]
    first = {(spec.shape or ("",))[0] for spec in ranked}
    size = first.pop() if len(first) == 1 else None
    if not isinstance(size, int) or any(_is_single_image(spec) for spec in ranked):
        return BatchAxes({})
    return BatchAxes({spec.name: 0 for spec in ranked}, fixed=size)


def _is_named_batch(axis: DynamicAxis) -> bool:
    return find_role_by_name(axis.symbol) == "batch"


def _is_single_image(spec: TensorSpec) -> bool:
    """Tell a 3xHxW image from a batch of three."""
    return spec.rank == _IMAGE_RANK and (spec.shape or ())[0] == _IMAGE_CHANNELS


def to_numpy_dtype(dtype: DType) -> np.dtype[np.generic]:
    """Return numpy's type for an element type (that of ml_dtypes where numpy has none)."""
    found: np.dtype[np.generic] = helper.tensor_dtype_to_np_dtype(dtype.code)
    return found


Array = npt.NDArray[np.generic]
