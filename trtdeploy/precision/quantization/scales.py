"""Scales: how far the steps of an 8-bit type lie apart."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import numpy.typing as npt

from trtdeploy.core.dtypes import DType
from trtdeploy.core.number_formats import QuantizedType

_SCALE_TYPES: dict[DType, tuple[npt.DTypeLike, npt.DTypeLike, float, float]] = {
    DType.FLOAT16: (np.float16, np.uint16, 2.0**-24, 65504.0),
    DType.BFLOAT16: (ml_dtypes.bfloat16, np.uint16, 2.0**-126, float(2**128 - 2**120)),
    DType.FLOAT32: (np.float32, np.uint32, 2.0**-126, float(2**128 - 2**104)),
}
"""Per type: its values, its bits, the smallest and the largest scale.

The smallest is a subnormal in FP16 only (IEEE 754 binary16, table 3.5): FP16 arithmetic keeps those
on GPUs and CPUs alike, while those of the wide types may be flushed to zero.
"""


def compute_scales(
    amax: npt.NDArray[np.generic], kind: QuantizedType, scale_dtype: DType
) -> npt.NDArray[np.float32]:
    """Return ``amax / kind.max``, rounded up to a value that ``scale_dtype`` has.

    Rounded up, so that nothing up to amax saturates. Always finite and positive: at least
    2^-24 in FP16 and 2^-126 in BF16 and FP32, at most the largest number of the type (an amax
    beyond that saturates). An amax of 0, as dead channels and constant zeros have, counts as
    1: any positive scale gives exactly 0 back, and a step of 1/max suits a value that appears
    there after all.

    Args:
        amax: Largest magnitudes to represent, any shape.
        kind: The 8-bit type.
        scale_dtype: FLOAT16, BFLOAT16 or FLOAT32: the type that the scales are stored in.

    Returns:
        FP32, the shape of ``amax``.

    Raises:
        ValueError: An amax is negative, infinite or not a number, or ``scale_dtype`` is none
            of the three.
    """
    if scale_dtype not in _SCALE_TYPES:
        raise ValueError(f"scales are float16, bfloat16 or float32, not {scale_dtype.label}")
    wanted = np.asarray(amax, np.float64)
    if not (np.isfinite(wanted) & (wanted >= 0)).all():
        raise ValueError("amax must be finite and not negative")
    dtype, bits, smallest, largest = _SCALE_TYPES[scale_dtype]
    wanted = np.where(wanted > 0, wanted, 1.0) / kind.max
    wanted = np.clip(wanted, smallest, largest)
    nearest = wanted.astype(dtype)
    # the bits of the next larger positive number are the next integer
    above = (nearest.view(bits) + 1).astype(bits).view(dtype)
    scales: npt.NDArray[np.float32] = np.where(nearest < wanted, above, nearest).astype(np.float32)
    return scales
