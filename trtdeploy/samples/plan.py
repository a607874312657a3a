"""How one array file is read once it is known to fit the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from trtdeploy.core.arrays import Array
from trtdeploy.samples.arrays import ArrayFile, ArrayHeader
from trtdeploy.samples.pixels import PixelScaling


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
        file: The file.
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
