"""Weights that change while they are streamed: scaled by channel, or quantized to 8 bits."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np
import numpy.typing as npt

from trtdeploy.core.dtypes import DType
from trtdeploy.graph.channels import PIECE_ELEMENTS, ChannelLayout

EIGHT_BIT = {
    DType.INT8: np.dtype(np.int8),
    DType.FLOAT8E4M3FN: np.dtype(ml_dtypes.float8_e4m3fn),
    DType.FLOAT8E5M2: np.dtype(ml_dtypes.float8_e5m2),
}
"""The types that values can be quantized to."""


@dataclass(frozen=True, eq=False)
class ChannelFactors:
    """Numbers that a tensor is multiplied by, one per channel.

    Attributes:
        values: FP64, flat.
        layout: Which elements each of ``values`` belongs to.
    """

    values: npt.NDArray[np.float64]
    layout: ChannelLayout


@dataclass(frozen=True, eq=False)
class WeightQuantization:
    """How a tensor is quantized; symmetric, so that 0 is stored as 0.

    Attributes:
        scales: FP32, flat, finite and positive: ``value = stored * scale``.
        layout: Which elements each of ``scales`` belongs to.
        dtype: INT8 or an FP8 type.
        max: Largest magnitude that is stored; what is beyond saturates.
    """

    scales: npt.NDArray[np.float32]
    layout: ChannelLayout
    dtype: DType
    max: float


def scale_values(
    values: npt.NDArray[np.generic], factors: ChannelFactors, start: int
) -> npt.NDArray[np.float32]:
    """Return ``values * factors`` in FP32, multiplied in FP64.

    Args:
        values: Elements of a flat tensor.
        factors: Those of the whole tensor.
        start: Index of the first element of ``values`` in the tensor.
    """
    scaled = np.empty(values.size, np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for begin in range(0, values.size, PIECE_ELEMENTS):
            piece = values[begin : begin + PIECE_ELEMENTS].astype(np.float64)
            piece *= factors.layout.spread(factors.values, start + begin, piece.size)
            scaled[begin : begin + piece.size] = piece
    return scaled


def quantize_values(
    values: npt.NDArray[np.generic], quantization: WeightQuantization, start: int
) -> npt.NDArray[np.generic]:
    """Return ``values`` in 8 bits, bit for bit what QuantizeLinear computes (ONNX specification).

    The quotient is FP32, rounded half to even; what is too large, infinity included, saturates.
    INT8 reaches from -127 to 127 here. NaN becomes 0 in INT8, which has no such value.

    Args:
        values: Elements of a flat tensor; FP64 ones are rounded to FP32 first.
        quantization: That of the whole tensor.
        start: Index of the first element of ``values`` in the tensor.
    """
    stored = np.empty(values.size, EIGHT_BIT[quantization.dtype])
    with np.errstate(over="ignore", invalid="ignore"):
        for begin in range(0, values.size, PIECE_ELEMENTS):
            piece = values[begin : begin + PIECE_ELEMENTS].astype(np.float32)
            piece /= quantization.layout.spread(quantization.scales, start + begin, piece.size)
            np.clip(piece, -quantization.max, quantization.max, out=piece)
            if quantization.dtype is DType.INT8:
                np.rint(piece, out=piece)
                np.nan_to_num(piece, copy=False)
            stored[begin : begin + piece.size] = piece
    return stored
