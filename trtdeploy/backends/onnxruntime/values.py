"""Types that ONNX Runtime computes in but does not exchange with numpy: BF16 and the FP8 family.

Measured on ONNX Runtime 1.32: ``run`` refuses such inputs ("Numpy_type 256 can't be converted"),
and ``OrtValue.numpy`` gives no BF16 and gives FP8 as uint8. An ``OrtValue`` over the same bytes
works.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from trtdeploy.backends.numpy_types import to_numpy_type
from trtdeploy.core.arrays import Array, Feeds
from trtdeploy.core.dtypes import DType
from trtdeploy.core.tensors import TensorSpec

RAW_TYPES = frozenset(
    {
        DType.BFLOAT16,
        DType.FLOAT8E4M3FN,
        DType.FLOAT8E4M3FNUZ,
        DType.FLOAT8E5M2,
        DType.FLOAT8E5M2FNUZ,
    }
)
"""Types that need this module."""

_UNSIGNED = {1: np.uint8, 2: np.uint16}


def run_with_values(
    runtime: Any,
    session: Any,
    inputs: Sequence[TensorSpec],
    outputs: Sequence[TensorSpec],
    feeds: Feeds,
    run_options: Any = None,
) -> list[Array]:
    """Run a session whose inputs or outputs have raw types; arguments as already checked."""
    arrays = {spec.name: np.ascontiguousarray(feeds[spec.name]) for spec in inputs}
    values = {spec.name: _wrap(runtime, arrays[spec.name], spec.dtype) for spec in inputs}
    results = session.run_with_ort_values([spec.name for spec in outputs], values, run_options)
    return [_read(value, spec.dtype) for value, spec in zip(results, outputs, strict=True)]


def _wrap(runtime: Any, array: Array, dtype: DType) -> Any:
    if dtype not in RAW_TYPES:
        return runtime.OrtValue.ortvalue_from_numpy(array)
    bits = array.view(_UNSIGNED[array.dtype.itemsize])
    return runtime.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, dtype.code)


def _read(value: Any, dtype: DType) -> Array:
    if dtype not in RAW_TYPES:
        array: Array = value.numpy()
        return array
    numpy_type, shape = to_numpy_type(dtype), tuple(value.shape())
    assert numpy_type is not None
    count = int(np.prod(shape, dtype=np.int64)) * numpy_type.itemsize
    if not count:
        return np.empty(shape, numpy_type)
    source = (ctypes.c_uint8 * count).from_address(value.data_ptr())
    return np.ctypeslib.as_array(source).copy().view(numpy_type).reshape(shape)
