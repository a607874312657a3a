"""What a model computes when it rounds otherwise than in FP32: in FP64, hardly at all.

Quantized models do not run in FP64. There, rounding decides where a value on a tie goes, and one
step early in a model is many at its end: so every result of every operator is rounded once more, to
either side at random.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from trtdeploy.core.arrays import Outputs
from trtdeploy.core.errors import InputError
from trtdeploy.export.proof import ProofSample
from trtdeploy.export.pytorch.flat_module import FlatModule
from trtdeploy.export.pytorch.quiet import quiet_frameworks

_ONE_RESULT = 8 * 2.0**-23
"""Times the last place of FP32: what a sum of some hundred products loses, grows by its root."""
_RUNS = 12
"""A value near a tie goes to the other side in some runs only, and that is one step or none."""
_UNFIT = (InputError, RuntimeError, TypeError, ValueError, AttributeError, copy.Error)
"""What the copying, casting and running of somebody's modules raises."""


def run_rounding_otherwise(flat: FlatModule, sample: ProofSample) -> Sequence[Outputs]:
    """Return what the model computes for a sample, rounding less or otherwise than in FP32.

    Empty where the model runs neither in FP64 nor with its results changed. Needs the memory of
    two more copies of it.
    """
    feeds = {name: torch.from_numpy(array) for name, array in sample.feeds.items()}
    with quiet_frameworks():
        try:
            wide = copy.deepcopy(flat).double()
            return [wide.run({name: _widen(tensor) for name, tensor in feeds.items()})]
        except _UNFIT:
            pass
        try:
            return [_run_rounding_randomly(flat, feeds, seed) for seed in range(_RUNS)]
        except InputError:
            return []


def _widen(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor


def _run_rounding_randomly(
    flat: FlatModule, feeds: Mapping[str, torch.Tensor], seed: int
) -> Outputs:
    with _RandomRounding(seed):
        return flat.run(feeds)


class _RandomRounding(TorchDispatchMode):  # type: ignore[misc]  # torch is not followed
    """Moves what operators return by up to a few units in the last place.

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
        return tensor * (1 + _ONE_RESULT * side)
