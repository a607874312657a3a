"""Whether the arrays of a file fit the inputs of a model: names, types, ranks, sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trtdeploy.config.axis_roles import AxisPlace, is_anonymous
from trtdeploy.config.batch_layout import BatchLayout
from trtdeploy.config.preprocessing import PreprocessingSection
from trtdeploy.core.dtypes import DType
from trtdeploy.core.names import suggest_name
from trtdeploy.core.tensors import Shape, TensorSpec, format_shape
from trtdeploy.graph.numpy_types import to_numpy_dtype
from trtdeploy.samples.arrays import ArrayFile, ArrayHeader
from trtdeploy.samples.pixels import PixelScaling, find_image_layout
from trtdeploy.samples.plan import Column, FilePlan

_KINDS = ("iu", "f", "c")


@dataclass(frozen=True)
class ColumnPlanner:
    """Checks files against a model's inputs.

    Attributes:
        inputs: What the model must be fed.
        batch_axes: Which axes count samples.
        preprocessing: What 8-bit pixels for a float image go through; None refuses them.
    """

    inputs: Sequence[TensorSpec]
    batch_axes: BatchLayout
    preprocessing: PreprocessingSection | None

    def plan(
        self, file: ArrayFile, headers: Mapping[str, ArrayHeader]
    ) -> tuple[FilePlan | None, list[str]]:
        """Return how to read a file, or everything that is wrong with it, a line each."""
        problems: list[str] = []
        columns: dict[str, Column] = {}
        for spec in self.inputs:
            header = headers.get(spec.name)
            column = None if header is None else self._plan_column(spec, header)
            if column is not None:
                columns[spec.name] = column
            elif header is not None:
                problems.append(self._explain_misfit(spec, header))
            else:
                hint = suggest_name(spec.name, headers)
                problems.append(f"input {spec.name!r}: no array of that name. {hint}")
        problems = problems or self._find_disagreements(columns)
        if problems:
            return None, [f"{file.path}: {problem}" for problem in problems]
        unread = tuple(name for name in headers if name not in columns)
        return FilePlan(file, columns, unread), []

    def _plan_column(self, spec: TensorSpec, header: ArrayHeader) -> Column | None:
        axes = self._find_axes(spec, len(header.shape))
        if axes is None or not _has_sizes(spec, header.shape, axes):
            return None
        wanted, given = to_numpy_dtype(spec.dtype), header.dtype.newbyteorder("=")
        is_text = spec.dtype is DType.STRING and given.kind == "U"
        if given == wanted or is_text or _is_lossless(given, wanted):
            return Column(header, axes[1], wanted)
        layout = None
        if self.preprocessing is not None and given == np.uint8 and wanted.kind == "f":
            layout = find_image_layout(spec, self.batch_axes, self.preprocessing)
        if layout is None or self.preprocessing is None:
            return None
        return Column(
            header, axes[1], wanted, PixelScaling(self.preprocessing, layout.channel_axis)
        )

    def _find_axes(self, spec: TensorSpec, rank: int) -> tuple[int | None, int | None] | None:
        """Return the axis that counts samples in the model and in an array of this rank.

        None stands for an array whose rank does not fit.
        """
        batch_axis = self.batch_axes.inputs.get(spec.name)
        if spec.rank is None or rank == spec.rank:
            return batch_axis, batch_axis
        if batch_axis is None and rank == spec.rank + 1:
            return None, 0
        return (batch_axis, None) if batch_axis is not None and rank == spec.rank - 1 else None

    def _explain_misfit(self, spec: TensorSpec, header: ArrayHeader) -> str:
        given = f"{header.dtype.name} {format_shape(header.shape)}"
        expected = f"{spec.dtype.label} {format_shape(self._describe_shape(spec))}"
        text = f"input {spec.name!r}: given {given}, expected {expected}"
        if header.dtype == np.uint8 and self.preprocessing is None and spec.dtype is DType.FLOAT32:
            text += "; pixels need a 'preprocessing:' section in the profile"
        return text

    def _describe_shape(self, spec: TensorSpec) -> Shape | None:
        axis = self.batch_axes.inputs.get(spec.name)
        if spec.shape is None or axis is None or self.batch_axes.fixed is None:
            return spec.shape
        return ("samples", *spec.shape[1:])

    def _find_disagreements(self, columns: Mapping[str, Column]) -> list[str]:
        """Check that all inputs hold equally many samples, and that a symbol has one size."""
        found: dict[str, dict[str, int]] = {}
        for spec in self.inputs:
            column, batch_axis = columns[spec.name], self.batch_axes.inputs.get(spec.name)
            if column.count is not None or batch_axis is not None:
                count = 1 if column.count is None else column.count
                found.setdefault("number of samples", {})[repr(spec.name)] = count
            free = [i for i in range(spec.rank or 0) if i != batch_axis]
            for axis, size in zip(free, column.sample_shape, strict=False):
                symbol = (spec.shape or ())[axis]
                if isinstance(symbol, str) and not is_anonymous(symbol):
                    place = str(AxisPlace(spec.name, axis))
                    found.setdefault(f"symbol {symbol!r}", {})[place] = size
        return [
            f"{subject}: given {', '.join(f'{place} {size}' for place, size in given.items())}, "
            "expected the same for all"
            for subject, given in found.items()
            if len(set(given.values())) > 1
        ]


def _has_sizes(
    spec: TensorSpec, given: tuple[int, ...], axes: tuple[int | None, int | None]
) -> bool:
    """Compare fixed sizes, leaving out the axes that count samples."""
    if spec.shape is None:
        return True
    wanted = [dim for i, dim in enumerate(spec.shape) if i != axes[0]]
    sample = [dim for i, dim in enumerate(given) if i != axes[1]]
    return all(isinstance(w, str) or w == g for w, g in zip(wanted, sample, strict=True))


def _is_lossless(given: np.dtype[np.generic], wanted: np.dtype[np.generic]) -> bool:
    """True for a wider type of the same kind, like int32 to int64 or float16 to float32."""
    same = any(given.kind in kinds and wanted.kind in kinds for kinds in _KINDS)
    return same and np.can_cast(given, wanted, "safe")
