"""Models trained in low precision become FP32 modules with the very values they were trained to."""

from __future__ import annotations

from typing import Any

import torch

from trtdeploy.export.pytorch.source import TorchSource

_NARROW = (torch.float16, torch.bfloat16)


def widen_module(source: TorchSource) -> None:
    """Make FP16 and BF16 parameters, buffers and examples FP32; every value stays what it was."""
    tensors = [*source.module.parameters(), *source.module.buffers()]
    narrow = [tensor for tensor in tensors if tensor.dtype in _NARROW]
    if narrow:
        kinds = sorted({str(tensor.dtype).removeprefix("torch.") for tensor in narrow})
        source.module.float()
        source.notes.append(
            f"{len(narrow)} of {len(tensors)} weights are stored in {' and '.join(kinds)}; the "
            "file holds the same values in float32, and a recipe chooses the precision"
        )
    source.args = tuple(map(_widen, source.args))
    source.kwargs = {name: _widen(value) for name, value in source.kwargs.items()}


def _widen(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.float() if value.dtype in _NARROW else value
    if type(value) is dict:
        return {key: _widen(entry) for key, entry in value.items()}
    return type(value)(map(_widen, value)) if type(value) in (tuple, list) else value
