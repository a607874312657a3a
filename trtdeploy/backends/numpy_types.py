"""Element types as numpy knows them, the narrow ones by ml_dtypes."""

from __future__ import annotations

from typing import Any, Final

import ml_dtypes
import numpy as np

from trtdeploy.core.dtypes import DType

NumpyType = np.dtype[Any]

_BY_NUMPY: Final = (
    DType.FLOAT32, DType.FLOAT64, DType.FLOAT16, DType.INT8, DType.INT16, DType.INT32, DType.INT64,
    DType.UINT8, DType.UINT16, DType.UINT32, DType.UINT64, DType.BOOL, DType.COMPLEX64,
    DType.COMPLEX128,
)  # fmt: skip
"""Types that numpy calls as we do."""
_TYPES: Final[dict[DType, NumpyType]] = {
    **{dtype: np.dtype(dtype.label) for dtype in _BY_NUMPY},
    DType.BFLOAT16: np.dtype(ml_dtypes.bfloat16),
    DType.FLOAT8E4M3FN: np.dtype(ml_dtypes.float8_e4m3fn),
    DType.FLOAT8E4M3FNUZ: np.dtype(ml_dtypes.float8_e4m3fnuz),
    DType.FLOAT8E5M2: np.dtype(ml_dtypes.float8_e5m2),
    DType.FLOAT8E5M2FNUZ: np.dtype(ml_dtypes.float8_e5m2fnuz),
}


def to_numpy_type(dtype: DType) -> NumpyType | None:
    """Return numpy's type of the same width; None for strings and for types below one byte."""
    return _TYPES.get(dtype)
