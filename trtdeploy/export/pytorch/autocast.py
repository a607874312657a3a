"""Autocast inside a model's code: ignored while it is exported, watched to learn what it pins.

An exported graph is FP32; precision is the business of recipes. Left alone, ``torch.export`` wraps
autocast blocks into functions whose nodes no longer say where they come from.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch

from trtdeploy.export.fp32_regions import GENERATED_CODE, Fp32Region, find_region
from trtdeploy.export.pytorch.code_place import CodePlace, find_place_of_stack

_Autocast = torch.amp.autocast_mode.autocast


@contextlib.contextmanager
def ignore_autocast() -> Iterator[None]:
    """Make autocast blocks in the model's code compute in FP32."""
    with _replace_enter(lambda self: self):
        yield


@contextlib.contextmanager
def remember_autocast() -> Iterator[None]:
    """Let blocks made meanwhile keep what their author wrote.

    Where there is no CUDA, PyTorch turns its blocks off as they are made.
    """
    initialize = _Autocast.__init__

    @functools.wraps(initialize)
    def remember(
        self: Any,
        device_type: str,
        dtype: Any = None,
        enabled: Any = True,
        cache_enabled: Any = None,
    ) -> None:
        initialize(self, device_type, dtype, enabled, cache_enabled)
        self._enabled = bool(enabled)

    _Autocast.__init__ = remember
    try:
        yield
    finally:
        _Autocast.__init__ = initialize


def find_fp32_regions(flat: torch.nn.Module, run_example: Callable[[], object]) -> list[Fp32Region]:
    """Return the code around which the author turned autocast off.

    That is a ``with torch.autocast(..., enabled=False)`` block, or the call of a function under
    ``torch.amp.custom_fwd(cast_inputs=torch.float32)``. The model is run once as under autocast for
    CUDA, which changes nothing on a CPU but makes ``custom_fwd`` act.
    """
    found: dict[CodePlace, None] = {}

    def enter(self: Any) -> Any:
        place = None if self._enabled else find_place_of_stack(inspect.currentframe(), flat)
        if place is not None:
            found[place] = None
        return self

    with remember_autocast(), _replace_enter(enter), _as_under_autocast():
        run_example()
    regions = [find_region(place.module, place.file, place.line) for place in found]
    return list(dict.fromkeys(regions))


def find_program_regions(program: torch.export.ExportedProgram) -> list[Fp32Region]:
    """Return the blocks of an exported program that autocast was turned off for.

    There they are functions of their own, compiled from generated text; which one a node was in is
    lost on the way to ONNX, so that blocks with autocast on count as well.
    """
    blocks = [node for node in program.graph.nodes if "wrap_with_autocast" in str(node.target)]
    disabled = any(node.args[2] is False for node in blocks)
    return [Fp32Region("", GENERATED_CODE, 0, sys.maxsize)] if disabled else []


@contextlib.contextmanager
def _replace_enter(enter: Callable[[Any], Any]) -> Iterator[None]:
    before = (_Autocast.__enter__, _Autocast.__exit__)
    _Autocast.__enter__, _Autocast.__exit__ = enter, lambda *_: False
    try:
        yield
    finally:
        _Autocast.__enter__, _Autocast.__exit__ = before


@contextlib.contextmanager
def _as_under_autocast() -> Iterator[None]:
    before = torch.is_autocast_enabled("cuda")
    torch.set_autocast_enabled("cuda", True)
    try:
        yield
    finally:
        torch.set_autocast_enabled("cuda", before)
        torch.clear_autocast_cache()
