"""Arrays in .npz and .npy files, read one sample at a time."""

from __future__ import annotations

import math
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format

from trtdeploy.core.arrays import Array
from trtdeploy.core.errors import InputError

ARRAY_SUFFIXES = (".npz", ".npy")

# What zipfile, its decompressors and numpy raise for a file that is damaged or encrypted.
_DAMAGE = (
    OSError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error,
    tokenize.TokenError,
)  # fmt: skip


@dataclass(frozen=True)
class ArrayHeader:
    """Shape, type and memory order of a stored array."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fortran_order: bool


@dataclass(frozen=True)
class ArrayFile:
    """One file of named arrays.

    Attributes:
        only_name: What the nameless array of an ``.npy`` file is called.
    """

    path: Path
    only_name: str

    def read_headers(self) -> dict[str, ArrayHeader]:
        """Return the header of every array, without reading the data.

        Raises:
            InputError: Not such a file, cut short, or it holds Python objects.
        """
        with self._name_damage(), self._open() as members:
            return {
                name: self._read_header(name, stream, length)
                for name, (stream, length) in members.items()
            }

    def iterate_rows(self, axes: dict[str, int | None], count: int) -> Iterator[dict[str, Array]]:
        """Yield ``count`` samples, each one array per name.

        Only the sample at hand is in memory, except for an array whose samples do not lie one
        after the other in the file (Fortran order, or an axis other than the first).

        Args:
            axes: The axis that counts samples by name; None yields the whole array every time.
            count: Number of samples.

        Raises:
            InputError: The data is damaged.
        """
        with self._name_damage(), self._open(tuple(axes)) as members:
            columns = {name: _iterate_column(members[name][0], axis) for name, axis in axes.items()}
            for _ in range(count):
                yield {name: next(column) for name, column in columns.items()}

    @contextmanager
    def _open(self, names: tuple[str, ...] | None = None) -> Iterator[dict[str, Any]]:
        """Open the wanted arrays (all by default): name to stream and length in bytes."""
        with ExitStack() as stack:
            if self.path.suffix.lower() == ".npy":
                file = stack.enter_context(self.path.open("rb"))
                yield {self.only_name: (file, self.path.stat().st_size)}
                return
            archive = stack.enter_context(zipfile.ZipFile(self.path))
            members = {
                info.filename.removesuffix(".npy"): info
                for info in archive.infolist()
                if info.filename.endswith(".npy")
            }
            yield {
                name: (stack.enter_context(archive.open(info)), info.file_size)
                for name, info in members.items()
                if names is None or name in names
            }

    def _read_header(self, name: str, stream: IO[bytes], length: int) -> ArrayHeader:
        header = _read_header(stream)
        if header.dtype.hasobject:
            raise InputError(
                f"{self.path}: array {name!r} holds pickled Python objects, which are never loaded",
                hint="Save plain numbers: numpy.savez(path, input_name=array, ...).",
            )
        expected = math.prod(header.shape) * header.dtype.itemsize
        if length < expected:
            raise InputError(
                f"{self.path}: array {name!r} should hold {expected} bytes, the file ends after "
                f"{length}",
                hint="The file was cut short; write it again.",
            )
        return header

    @contextmanager
    def _name_damage(self) -> Iterator[None]:
        try:
            yield
        except _DAMAGE as error:
            kind = self.path.suffix.lower()
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise InputError(
                f"{self.path} cannot be read as an {kind} file: {reason}",
                hint="Write it with numpy.savez(path, input_name=array, ...)."
                if kind == ".npz"
                else "Write it with numpy.save(path, array).",
            ) from error


def _read_header(stream: IO[bytes]) -> ArrayHeader:
    version = npy_format.read_magic(stream)
    readers = {
        (1, 0): npy_format.read_array_header_1_0,
        (2, 0): npy_format.read_array_header_2_0,
    }
    if version not in readers:
        raise ValueError(f"version {version[0]}.{version[1]} of the .npy format is not for numbers")
    shape, fortran_order, dtype = readers[version](stream)
    return ArrayHeader(shape, dtype, fortran_order)


def _iterate_column(stream: IO[bytes], axis: int | None) -> Iterator[Array]:
    header = _read_header(stream)
    if axis == 0 and not header.fortran_order:
        row = header.shape[1:]
        for _ in range(header.shape[0]):
            yield _read_values(stream, row, header)
        return
    if header.fortran_order:
        whole = _read_values(stream, header.shape[::-1], header).transpose()
    else:
        whole = _read_values(stream, header.shape, header)
    if axis is None:
        yield from repeat(whole)
        return
    for index in range(header.shape[axis]):
        yield np.asarray(whole.take(index, axis))


def _read_values(stream: IO[bytes], shape: tuple[int, ...], header: ArrayHeader) -> Array:
    wanted = math.prod(shape) * header.dtype.itemsize
    data = bytearray()
    while len(data) < wanted:
        chunk = stream.read(min(wanted - len(data), 1 << 24))
        if not chunk:
            raise EOFError(f"the data ends {wanted - len(data)} bytes too early")
        data += chunk
    array = np.frombuffer(data, header.dtype).reshape(shape)
    # The other byte order is the same number; everything later expects the machine's own.
    return array.astype(header.dtype.newbyteorder("="), copy=False)
