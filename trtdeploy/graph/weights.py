"""Weights that stay on the disk: where a tensor's bytes lie, and how to stream them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import ml_dtypes
import numpy as np
import numpy.typing as npt

from trtdeploy.core.dtypes import DType
from trtdeploy.core.errors import ModelFileError
from trtdeploy.graph.quantized_weights import (
    EIGHT_BIT,
    ChannelFactors,
    WeightQuantization,
    quantize_values,
    scale_values,
)

CHUNK_BYTES = 16 << 20
"""How much of a weight is in memory at once; a multiple of every element size."""

_NUMPY = {
    DType.FLOAT32: np.dtype("<f4"),
    DType.FLOAT16: np.dtype("<f2"),
    DType.FLOAT64: np.dtype("<f8"),
    DType.BFLOAT16: np.dtype(ml_dtypes.bfloat16),
    **EIGHT_BIT,
}


@dataclass(frozen=True)
class Span:
    """A run of bytes in a file."""

    path: Path
    offset: int
    length: int


@dataclass(frozen=True)
class StoredWeight:
    """A tensor of the main graph whose data is not in memory.

    Attributes:
        span: Where the source bytes lie.
        dtype: Element type of the source bytes.
        stored_as: Element type that ``iterate_bytes`` yields; differs from ``dtype`` once a
            recipe has narrowed or quantized the weight.
        rounded_to: Narrower type the values pass through on the way to ``stored_as``; None for
            no such stop.
        factors: What the source values are multiplied by, where a pass has folded a layer.
        quantization: How the values become ``stored_as``, where that is an 8-bit type.
    """

    span: Span
    dtype: DType
    stored_as: DType
    rounded_to: DType | None = None
    factors: ChannelFactors | None = None
    quantization: WeightQuantization | None = None

    @property
    def stored_bytes(self) -> int:
        """Size after the conversion to ``stored_as``."""
        return self.span.length * self.stored_as.bits // self.dtype.bits

    def scale(self, factors: ChannelFactors) -> StoredWeight | None:
        """Return the values times ``factors``.

        None when that cannot be streamed: the weight is not FP32, or is scaled along another axis.
        """
        if self.dtype is not DType.FLOAT32 or self.stored_as is not DType.FLOAT32:
            return None
        if self.factors is not None:
            if self.factors.layout != factors.layout:
                return None
            factors = ChannelFactors(self.factors.values * factors.values, factors.layout)
        return replace(self, factors=factors)

    def quantize(self, quantization: WeightQuantization) -> StoredWeight:
        """Return the values in 8 bits, quantized from those of ``iterate_arrays``."""
        return replace(
            self, stored_as=quantization.dtype, rounded_to=None, quantization=quantization
        )

    def widen(self) -> StoredWeight:
        """Return the same values, as they are stored now, in FP32; quantized ones stay 8-bit."""
        if self.stored_as is DType.FLOAT32 or self.quantization is not None:
            return self
        return replace(self, stored_as=DType.FLOAT32, rounded_to=self.stored_as)

    def iterate_arrays(self) -> Iterator[npt.NDArray[np.generic]]:
        """Yield flat arrays of the values before any conversion, one chunk at a time.

        Raises:
            ModelFileError: The file shrank since it was opened.
        """
        dtype = _NUMPY[self.dtype]
        start = 0
        for chunk in self._iterate_source():
            array = np.frombuffer(chunk, dtype=dtype)
            yield scale_values(array, self.factors, start) if self.factors else array
            start += array.size

    def iterate_bytes(self) -> Iterator[bytes | memoryview]:
        """Yield the bytes to store, converted to ``stored_as`` (round to nearest even)."""
        if self.quantization is not None:
            yield from self._iterate_quantized(self.quantization)
            return
        if self.stored_as == self.dtype and self.rounded_to is None and self.factors is None:
            yield from self._iterate_source()
            return
        for array in self.iterate_arrays():
            values = narrow_values(array, self.rounded_to) if self.rounded_to else array
            yield narrow_values(values, self.stored_as).view(np.uint8).data

    def _iterate_quantized(self, quantization: WeightQuantization) -> Iterator[memoryview]:
        start = 0
        for array in self.iterate_arrays():
            yield quantize_values(array, quantization, start).view(np.uint8).data
            start += array.size

    def _iterate_source(self) -> Iterator[bytes]:
        left = self.span.length
        try:
            with self.span.path.open("rb") as file:
                file.seek(self.span.offset)
                while left:
                    chunk = self._read_exactly(file, min(CHUNK_BYTES, left))
                    left -= len(chunk)
                    yield chunk
        except OSError as error:
            raise ModelFileError(
                f"the weights in {self.span.path} cannot be read: {error.strerror}",
                hint="The file was there when the model was loaded; load the model again.",
            ) from error

    def _read_exactly(self, file: BinaryIO, count: int) -> bytes:
        chunk = file.read(count)
        if len(chunk) < count:
            raise ModelFileError(
                f"{self.span.path} became shorter while it was read",
                hint="Wait until nothing writes the file any more, then try again.",
            )
        return chunk


def narrow_values(values: npt.NDArray[np.generic], dtype: DType) -> npt.NDArray[np.generic]:
    """Return ``values`` in ``dtype``, rounded to nearest even, beyond its range to infinity."""
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(_NUMPY[dtype])


@dataclass(frozen=True)
class WeightRange:
    """Magnitudes found in one constant.

    Attributes:
        amax: Largest finite magnitude (0 for an all-zero or empty tensor).
        smallest: Smallest finite value, with sign.
        largest: Largest finite value, with sign.
        has_nan: At least one element is not a number.
        has_inf: At least one element is infinite.
    """

    amax: float
    smallest: float
    largest: float
    has_nan: bool
    has_inf: bool


def measure_range(chunks: Iterator[npt.NDArray[np.generic]]) -> WeightRange:
    """Return the range of the values in ``chunks`` (floating-point arrays)."""
    low, high, nan, inf = np.inf, -np.inf, False, False
    for chunk in chunks:
        if not chunk.size:
            continue
        values = chunk if chunk.dtype in (np.float32, np.float64) else chunk.astype(np.float32)
        lowest, highest = float(values.min()), float(values.max())
        if not (np.isfinite(lowest) and np.isfinite(highest)):
            nan |= bool(np.isnan(values).any())
            inf |= bool(np.isinf(values).any())
            values = values[np.isfinite(values)]
            if not values.size:
                continue
            lowest, highest = float(values.min()), float(values.max())
        low, high = min(low, lowest), max(high, highest)
    if low > high:
        low = high = 0.0
    return WeightRange(max(abs(low), abs(high)), low, high, nan, inf)
