"""The numbers of a constant, wherever they lie: in the structure, or in a file beside it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from onnx import TensorProto, numpy_helper

from trtdeploy.graph.index import Scope
from trtdeploy.graph.model import OnnxModel

LIMIT_BYTES = 4 << 20
"""Scales, zero points and biases are far below this; a larger constant is a weight."""


def read_constant(
    model: OnnxModel, scope: Scope, name: str, *, limit_bytes: int = LIMIT_BYTES
) -> npt.NDArray[np.generic] | None:
    """Return the values of the initializer that ``name`` stands for, seen from ``scope``.

    Args:
        model: The model that ``scope`` belongs to.
        scope: Where the reader lies.
        name: A value; empty for an operand that is left out.
        limit_bytes: Larger constants are not read.

    Returns:
        The array; None when the value is computed, text, damaged, or larger than the limit.
    """
    owner = scope.resolve(name) if name else None
    tensor = owner.initializers.get(name) if owner is not None else None
    if owner is None or tensor is None:
        return None
    weight = model.weights.get(name) if owner.parent is None else None
    if weight is not None:
        if weight.stored_bytes > limit_bytes:
            return None
        stored = TensorProto(name=name, data_type=weight.stored_as.code, dims=tensor.dims)
        stored.raw_data = b"".join(bytes(chunk) for chunk in weight.iterate_bytes())
        tensor = stored
    try:
        array: npt.NDArray[np.generic] = numpy_helper.to_array(tensor)
    except (ValueError, TypeError, KeyError):
        return None
    return None if array.dtype == np.object_ or array.nbytes > limit_bytes else array
