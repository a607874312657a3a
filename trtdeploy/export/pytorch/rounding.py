"""How far FP32 rounding moves a model's outputs: its distance from itself in FP64."""

from __future__ import annotations

import copy
from collections.abc import Mapping

import torch

from trtdeploy.export.proof import Sample, measure_error
from trtdeploy.export.pytorch.flat_module import FlatModule
from trtdeploy.export.pytorch.quiet import quiet_frameworks
from trtdeploy.export.pytorch.size_search import RUN_ERRORS


def measure_rounding(flat: FlatModule, sample: Sample) -> Mapping[str, float]:
    """Return the largest error of each output, relative to its largest magnitude.

    Empty where the model cannot be run in FP64. Needs the memory of two more copies of it.
    """
    with quiet_frameworks():
        try:
            wide = copy.deepcopy(flat).double()
            feeds = {name: _widen(torch.from_numpy(a)) for name, a in sample.feeds.items()}
            exact = wide.run(feeds)
        except (*RUN_ERRORS, AttributeError):
            return {}
    return {name: measure_error(exact[name], found) for name, found in sample.expected.items()}


def _widen(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor
