"""The arrays that models are run on; apart from ``tensors``, which must not load numpy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float64]
Feeds = Mapping[str, Array]
Outputs = Mapping[str, Array]

Runner = Callable[[Feeds], Outputs]
"""Runs a model once; the arrays it returns are the caller's own, as those of a ``Session`` are."""

FeedsMaker = Callable[
    [Mapping[str, tuple[int, ...]], Mapping[str, tuple[int, ...]]], Iterator[Feeds]
]
"""Makes the feeds for one point: from input shapes and the contents of shape tensors."""
