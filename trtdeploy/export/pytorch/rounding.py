"""How far FP32 rounding moves a model's outputs: its distance from itself in FP64.

Quantized models do not run in FP64. There, rounding decides where a value on a tie goes, and one
step early in a model is many at its end: so every result of every operator is rounded once more, to
either side at random.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from trtdeploy.export.proof import Sample, measure_error
from trtdeploy.export.pytorch.flat_module import FlatModule
from trtdeploy.export.pytorch.quiet import quiet_frameworks
from trtdeploy.export.pytorch.size_search import RUN_ERRORS

_ONE_ROUNDING = 2.0**-23
"""Distance from 1 to the next number of FP32 (IEEE 754 binary32)."""
_RUNS = 3


def measure_rounding(flat: FlatModule, sample: Sample) -> Mapping[str, float]:
    """Return the largest error of each output, relative to its largest magnitude.

    Empty where the model runs neither in FP64 nor with its results changed. Needs the memory of
    two more copies of it.
    """
    with quiet_frameworks():
        try:
            wide = copy.deepcopy(flat).double()
            feeds = {name: _widen(torch.from_numpy(a)) for name, a in sample.feeds.items()}
            exact = wide.run(feeds)
        except (*RUN_ERRORS, AttributeError):
            return _measure_random_rounding(flat, sample)
    return {name: measure_error(exact[name], found) for name, found in sample.expected.items()}


def _widen(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor


def _measure_random_rounding(flat: FlatModule, sample: Sample) -> Mapping[str, float]:
    feeds = {name: torch.from_numpy(array) for name, array in sample.feeds.items()}
    rounding = dict.fromkeys(sample.expected, 0.0)
    for seed in range(_RUNS):
        try:
            with _RandomRounding(seed):
                outputs = flat.run(feeds)
        except RUN_ERRORS:
            return {}
        for name, expected in sample.expected.items():
            rounding[name] = max(rounding[name], measure_error(expected, outputs[name]))
    return rounding


class _RandomRounding(TorchDispatchMode):  # type: ignore[misc]  # torch is not followed
    """Moves what operators return by up to one unit in the last place.

    Views and results written in place are left alone: they are other tensors' memory.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._generator = torch.Generator().manual_seed(seed)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if any(returned.alias_info is not None for returned in func._schema.returns):
            return result
        return tree_map_only(torch.Tensor, self._round, result)

    def _round(self, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.dtype is not torch.float32:
            return tensor
        side = torch.rand(tensor.shape, generator=self._generator) * 2 - 1
        return tensor * (1 + _ONE_ROUNDING * side)
