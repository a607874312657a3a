"""The border of a model whose inputs and outputs are narrow (``precision.io: recipe``).

Sessions cast nothing, and a consumer of such a model hands over FP16 or BF16, rounded to nearest
even. So does the check, here and nowhere else. The reference is fed the same rounded values,
widened: what rounding an input loses was decided with the profile, and no pin or bug fix brings it
back, so it must neither be called an error of the model nor hide one. A task metric is about the
whole deployment instead: there the reference sees the samples as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trtdeploy.backends.numpy_types import to_numpy_type
from trtdeploy.backends.session import Session
from trtdeploy.core.arrays import Array, Feeds, Outputs, Runner
from trtdeploy.core.dtypes import DType
from trtdeploy.core.errors import InputError


@dataclass(frozen=True)
class Border:
    """Casts at the border of a typed model; integers, booleans and texts pass as they are.

    Attributes:
        dtype: What takes FP32's place there; None when everything keeps its type.
    """

    dtype: DType | None

    def round_feeds(self, feeds: Feeds) -> Feeds:
        """Return the feeds as FP32 values that the narrow type can hold.

        Raises:
            InputError: A finite value becomes infinite.
        """
        if self.dtype is None:
            return feeds
        rounded = {n: _cast(n, a, self.dtype) for n, a in feeds.items() if a.dtype == np.float32}
        return {**feeds, **{name: _cast(name, values) for name, values in rounded.items()}}

    def open_runner(self, session: Session) -> Runner:
        """Return what runs a session on FP32 feeds, and gives FP32 outputs."""
        if self.dtype is None:
            return session.run
        narrow = {spec.name for spec in session.inputs if spec.dtype is self.dtype}
        dtype = self.dtype

        def run(feeds: Feeds) -> Outputs:
            given = {n: _cast(n, a, dtype) if n in narrow else a for n, a in feeds.items()}
            return {name: _cast(name, values) for name, values in session.run(given).items()}

        return run


_NARROW = frozenset(map(to_numpy_type, (DType.FLOAT16, DType.BFLOAT16)))


def _cast(name: str, array: Array, dtype: DType = DType.FLOAT32) -> Array:
    """Return FP32 as ``dtype``, and what is narrow as FP32."""
    if array.dtype not in (_NARROW if dtype is DType.FLOAT32 else (np.float32,)):
        return array
    with np.errstate(over="ignore"):
        cast = np.asarray(array.astype(to_numpy_type(dtype)))
    if np.isinf(cast).any() and not np.array_equal(np.isinf(cast), np.isinf(array)):
        raise InputError(
            f"input {name!r} holds {np.abs(array[np.isfinite(array)]).max():.6g}, which "
            f"{dtype.label} cannot hold",
            hint="Scale that input in the model, or leave precision.io at 'keep'.",
        )
    return cast
