"""Do the arrays fit the inputs? Cheap when they do, explicit when they do not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from trtdeploy.backends.numpy_types import NumpyType, to_numpy_type
from trtdeploy.backends.session import SessionFeeds
from trtdeploy.core.dtypes import DType
from trtdeploy.core.errors import FeedError
from trtdeploy.core.names import suggest_name
from trtdeploy.core.tensors import TensorSpec, format_shape

_TEXT_KINDS = frozenset("OUS")
"""numpy's kinds for texts: objects, and fixed-width texts and bytes."""


class FeedCheck:
    """Expectations of a model's inputs, worked out once.

    Immutable, so threads may share it.

    Args:
        inputs: The model's inputs.
        array_types: Types an array may have; each has ``dtype`` and ``shape``.
    """

    def __init__(
        self, inputs: Sequence[TensorSpec], array_types: tuple[type[Any], ...] = (np.ndarray,)
    ) -> None:
        self._inputs = {spec.name: spec for spec in inputs}
        self._array_types = array_types
        self._count = len(self._inputs)
        self._expected = tuple(
            (spec.name, to_numpy_type(spec.dtype), spec.rank, _list_fixed_axes(spec))
            for spec in inputs
        )

    def check(self, feeds: SessionFeeds) -> None:
        """Compare names, types, ranks and fixed sizes.

        Raises:
            FeedError: With every difference, what was given and what was expected.
        """
        if len(feeds) != self._count or not self._fits(feeds):
            raise self._explain(feeds)

    def _fits(self, feeds: SessionFeeds) -> bool:
        for name, dtype, rank, fixed in self._expected:
            array: Any = feeds.get(name)
            if not isinstance(array, self._array_types):
                return False
            # numpy takes None for float64 when it compares types
            if not _is_text(array.dtype) if dtype is None else array.dtype != dtype:
                return False
            shape = array.shape
            if rank is not None and len(shape) != rank:
                return False
            for axis, size in fixed:
                if shape[axis] != size:
                    return False
        return True

    def _explain(self, feeds: SessionFeeds) -> FeedError:
        problems = [*self._find_wrong_names(feeds)]
        for name, spec in self._inputs.items():
            if name in feeds:
                problems += self._find_wrong_form(spec, feeds[name])
        text = "; ".join(problems)
        return FeedError(text, hint="Nothing is cast or reshaped: give each input as it is listed.")

    def _find_wrong_names(self, feeds: SessionFeeds) -> Iterator[str]:
        for name in feeds:
            if name not in self._inputs:
                yield f"there is no input {name!r}. {suggest_name(str(name), self._inputs)}"
        for name, spec in self._inputs.items():
            if name not in feeds:
                given = ", ".join(map(repr, feeds)) or "nothing"
                yield f"input {name!r} ({_describe(spec)}) is missing; given: {given}"

    def _find_wrong_form(self, spec: TensorSpec, array: Any) -> Iterator[str]:
        place = f"input {spec.name!r}"
        if not isinstance(array, self._array_types):
            kind = type(array)
            yield (
                f"{place} must be a numpy array ({_describe(spec)}), not "
                f"{kind.__module__}.{kind.__qualname__}"
            )
            return
        if not _has_type(array.dtype, spec.dtype):
            yield f"{place} must be {spec.dtype.label}, not {_name_type(array.dtype)}"
        shape = tuple(array.shape)
        expected, given = format_shape(spec.shape), format_shape(shape)
        if spec.rank is not None and len(shape) != spec.rank:
            yield f"{place} must have rank {spec.rank} ({expected}), not {len(shape)} ({given})"
            return
        for axis, size in _list_fixed_axes(spec):
            if shape[axis] != size:
                yield f"{place} must have {size} on axis {axis} ({expected}), not {shape[axis]}"


def _list_fixed_axes(spec: TensorSpec) -> tuple[tuple[int, int], ...]:
    return tuple((i, dim) for i, dim in enumerate(spec.shape or ()) if isinstance(dim, int))


def _has_type(given: NumpyType, wanted: DType) -> bool:
    expected = to_numpy_type(wanted)
    return _is_text(given) if expected is None else given == expected


def _is_text(dtype: NumpyType) -> bool:
    return dtype.kind in _TEXT_KINDS


def _name_type(dtype: NumpyType) -> str:
    return dtype.name if dtype.isnative else f"{dtype.name} in foreign byte order"


def _describe(spec: TensorSpec) -> str:
    return f"{spec.dtype.label}, {format_shape(spec.shape)}"
