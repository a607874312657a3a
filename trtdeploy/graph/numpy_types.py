"""Numpy's types for element types."""

from __future__ import annotations

import numpy as np
from onnx import helper

from trtdeploy.core.dtypes import DType


def to_numpy_dtype(dtype: DType) -> np.dtype[np.generic]:
    """Return numpy's type for an element type (that of ml_dtypes where numpy has none)."""
    found: np.dtype[np.generic] = helper.tensor_dtype_to_np_dtype(dtype.code)
    return found
