"""Which sizes a model takes, found by running it in PyTorch."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import torch

from trtdeploy.config.axis_roles import find_dynamic_axes
from trtdeploy.config.batch_layout import find_batch
from trtdeploy.core.errors import InputError
from trtdeploy.core.tensors import SizeRule, TensorSpec
from trtdeploy.export.pytorch.autocast import ignore_autocast
from trtdeploy.export.pytorch.example import describe_tensor, make_feeds
from trtdeploy.export.pytorch.flat_module import FlatModule
from trtdeploy.export.pytorch.guards import STEPS
from trtdeploy.export.pytorch.source import TorchSource

Axes = Mapping[str, Mapping[int, str]]
_FARTHEST_TRIED = 1024
_LONGEST_RUN_S = 0.25
"""The next run, of twice the size, takes up to eight times as long, and as much more memory."""


def example_sizes(tensors: Mapping[str, torch.Tensor], dynamic: Axes) -> dict[str, int]:
    """Return the example's size of every symbol."""
    return {
        symbol: int(tensors[name].shape[axis])
        for name, axes in dynamic.items()
        for axis, symbol in axes.items()
    }


def shapes_at(
    tensors: Mapping[str, torch.Tensor], dynamic: Axes, sizes: Mapping[str, int]
) -> dict[str, tuple[int, ...]]:
    """Return the shape of every input when its symbols have the given sizes."""
    return {
        name: tuple(
            sizes[dynamic[name][axis]] if axis in dynamic.get(name, {}) else int(size)
            for axis, size in enumerate(tensor.shape)
        )
        for name, tensor in tensors.items()
    }


def find_batch_symbols(tensors: Mapping[str, torch.Tensor], dynamic: Axes) -> frozenset[str]:
    """Return the symbol that counts samples, if any does."""
    return frozenset(find_batch(_to_specs(tensors, dynamic)).symbols[:1])


def _to_specs(tensors: Mapping[str, torch.Tensor], dynamic: Axes) -> list[TensorSpec]:
    return [describe_tensor(name, tensor, dynamic.get(name)) for name, tensor in tensors.items()]


class SizeSearch:
    """Runs the model at other sizes than the example's and remembers nothing."""

    def __init__(self, flat: FlatModule, source: TorchSource, dynamic: Axes, seed: int) -> None:
        self._flat, self._source, self._dynamic, self._seed = flat, source, dynamic, seed
        self._tensors = source.named_tensors()
        self.sizes = example_sizes(self._tensors, dynamic)
        self.batches = find_batch_symbols(self._tensors, dynamic)
        axes = find_dynamic_axes(_to_specs(self._tensors, dynamic))
        self._images = {axis.symbol for axis in axes if axis.role in ("height", "width")}

    def runs_at(self, sizes: Mapping[str, int]) -> bool:
        """Tell whether the model runs when its symbols have these sizes."""
        shapes = shapes_at(self._tensors, self._dynamic, {**self.sizes, **sizes})
        feeds = make_feeds(self._source, shapes, self._seed)
        try:
            with ignore_autocast():
                self._flat.call(feeds)
        except InputError:
            return False
        return True

    def find_rule(self, symbol: str, stated: int | None = None) -> SizeRule | None:
        """Return the smallest step that the model takes beside the example; None when none works.

        All other symbols keep the example's size. A step that the user stated is not questioned.
        """
        size, limit = self.sizes[symbol], self._source.limits.get(symbol)
        step = stated or _find_step(size, limit, lambda other: self.runs_at({symbol: other}))
        if step is None:
            return None
        if limit is None and symbol not in self._images:
            limit = self._find_limit(symbol, step)
        return SizeRule(symbol, step, step, limit)

    def _find_limit(self, symbol: str, step: int) -> int | None:
        """Return the largest size, e.g. of a table of positions; None when none is in sight."""
        size = self.sizes[symbol]
        good, bad = size, None
        while bad is None and good < _FARTHEST_TRIED:
            start, further = time.perf_counter(), good + max(good // step, 1) * step
            if self.runs_at({symbol: further}):
                good = further
            else:
                bad = further
            if time.perf_counter() - start > _LONGEST_RUN_S:
                break
        while bad is not None and bad - good > step:
            middle = good + (bad - good) // step // 2 * step
            good, bad = (middle, bad) if self.runs_at({symbol: middle}) else (good, middle)
        return None if bad is None else good


def _find_step(size: int, limit: int | None, runs_at: Callable[[int], bool]) -> int | None:
    """Return the smallest step whose next size works; None when no size but the example's does.

    A step counts only if the example's size is a multiple of it: that is what a rule can say.
    """
    for step in STEPS:
        beside = size + step if limit is None or size + step <= limit else size - step
        if size % step == 0 and beside > 0 and runs_at(beside):
            return step
    return None
