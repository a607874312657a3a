"""How far FP32 rounding moves a model's outputs: its distance from itself in FP64.

Quantized models do not run in FP64. There, rounding decides to which side a value on a tie goes, and
one step early in the model is many at its end: so their own weights and inputs are changed by as
much as FP32 rounding would.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping

import torch

from trtdeploy.export.proof import Sample, measure_error
from trtdeploy.export.pytorch.flat_module import FlatModule
from trtdeploy.export.pytorch.quiet import quiet_frameworks
from trtdeploy.export.pytorch.size_search import RUN_ERRORS

_NOISE = 8 * 2.0**-23
"""Relative size of the change: a few roundings of FP32 (IEEE 754 binary32)."""
_NOISE_RUNS = 3


def measure_rounding(flat: FlatModule, sample: Sample) -> Mapping[str, float]:
    """Return the largest error of each output, relative to its largest magnitude.

    Empty where the model runs neither in FP64 nor changed. Needs the memory of two more copies.
    """
    with quiet_frameworks():
        try:
            wide = copy.deepcopy(flat).double()
            feeds = {name: _widen(torch.from_numpy(a)) for name, a in sample.feeds.items()}
            exact = wide.run(feeds)
        except (*RUN_ERRORS, AttributeError):
            return _measure_by_noise(flat, sample)
    return {name: measure_error(exact[name], found) for name, found in sample.expected.items()}


def _widen(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor


def _measure_by_noise(flat: FlatModule, sample: Sample) -> Mapping[str, float]:
    rounding = dict.fromkeys(sample.expected, 0.0)
    for seed in range(_NOISE_RUNS):
        generator = torch.Generator().manual_seed(seed)
        try:
            changed = copy.deepcopy(flat)
            for tensor in (*changed.parameters(), *changed.buffers()):
                if tensor.is_floating_point():
                    tensor.data = _add_noise(tensor.data, generator)
            feeds = {
                name: _add_noise(torch.from_numpy(array), generator)
                for name, array in sample.feeds.items()
            }
            outputs = changed.run(feeds)
        except (*RUN_ERRORS, AttributeError):
            return {}
        for name, expected in sample.expected.items():
            rounding[name] = max(rounding[name], measure_error(expected, outputs[name]))
    return rounding


def _add_noise(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    if not tensor.is_floating_point():
        return tensor
    noise = torch.rand(tensor.shape, generator=generator, dtype=torch.float32)
    return tensor * (1 + _NOISE * (2 * noise - 1)).to(tensor.dtype)
