"""Whether the arrays of a file fit the inputs of a model, and how they are read when they do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trtdeploy.config.axis_roles import AxisPlace, is_anonymous
from trtdeploy.config.batch_layout import BatchLayout
from trtdeploy.config.preprocessing import PreprocessingSection
from trtdeploy.core.arrays import Array
from trtdeploy.core.dtypes import DType
from trtdeploy.core.names import suggest_name
from trtdeploy.core.tensors import Shape, TensorSpec, format_shape
from trtdeploy.graph.numpy_types import to_numpy_dtype
from trtdeploy.samples.arrays import ArrayFile, ArrayHeader
from trtdeploy.samples.pixels import PixelScaling, find_image_layout

_KINDS = ("iu", "f", "c")


@dataclass(frozen=True)
class Column:
    """How one array becomes one input.

    Attributes:
        header: What the file says about the array.
        axis: The array's axis that counts samples; None when it is one sample, or shared by all.
        dtype: Type of the input.
        scaling: Turns 8-bit pixels into the floats of an image input; None leaves values alone.
    """

    header: ArrayHeader
    axis: int | None
    dtype: np.dtype[np.generic]
    scaling: PixelScaling | None = None

    @property
    def count(self) -> int | None:
        """Number of samples; None when the array is one sample, or shared by all."""
        return None if self.axis is None else self.header.shape[self.axis]

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """Shape of one sample."""
        return tuple(dim for i, dim in enumerate(self.header.shape) if i != self.axis)

    @property
    def note(self) -> str:
        """What is converted; empty when nothing is."""
        given = self.header.dtype
        if self.scaling is not None:
            return "8-bit pixels scaled as 'preprocessing:' says"
        if given.newbyteorder("=") == self.dtype or self.dtype.kind == "O":
            return ""
        return f"{given.name} widened to {self.dtype.name}"

    def convert(self, values: Array) -> Array:
        """Return the values in the input's type; only lossless changes get this far."""
        if self.scaling is not None:
            values = self.scaling.apply(values)
        return values.astype(self.dtype, copy=False)


@dataclass(frozen=True)
class FilePlan:
    """One file whose arrays fit the model.

    Attributes:
        columns: One per input.
        unread: Arrays that are no input of the model.
    """

    file: ArrayFile
    columns: Mapping[str, Column]
    unread: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """Number of samples in the file."""
        counts = [column.count for column in self.columns.values() if column.count is not None]
        return counts[0] if counts else 1

    @property
    def sample_shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shape of one sample per input: files that agree can share batches."""
        return tuple(column.sample_shape for column in self.columns.values())

    @property
    def notes(self) -> list[str]:
        """What is converted and what is not read, one sentence each."""
        noted = {name: column.note for name, column in self.columns.items()}
        notes = [f"input {name!r}: {note}" for name, note in noted.items() if note]
        if self.unread:
            notes.append(f"arrays that are no input and are not read: {', '.join(self.unread)}")
        return notes

    def iterate_arrays(self) -> Iterator[dict[str, Array]]:
        """Yield the inputs of one sample after the other."""
        axes = {name: column.axis for name, column in self.columns.items()}
        shared: dict[str, Array] = {}
        for row in self.file.iterate_rows(axes, self.count):
            arrays = {}
            for name, column in self.columns.items():
                if column.axis is not None:
                    arrays[name] = column.convert(row[name])
                    continue
                # Converted once: batches recognise a shared array by identity.
                if name not in shared:
                    shared[name] = column.convert(row[name])
                arrays[name] = shared[name]
            yield arrays


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
