"""Models whose trace bakes in a decision that shows in few, small or masked outputs only."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class _Detector(nn.Module):  # type: ignore[misc]  # torch is not followed
    """Boxes in pixels and scores in one output."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)

    def forward(self, x: Any) -> Any:
        found = self.conv(x).flatten(2).sigmoid()
        boxes, scores = found[:, :4] * 640, found[:, 4:]
        if x.shape[0] == 2:
            scores = scores * 0.95
        return torch.cat([boxes, scores], 1)


class _Masked(nn.Module):  # type: ignore[misc]  # torch is not followed
    """Logits, all but the last masked."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        logits = self.linear(x)
        if x.shape[0] == 2:
            logits = logits * 3
        return logits.masked_fill(torch.arange(8) < 4, -1e9)


class _TiedIds(nn.Module):  # type: ignore[misc]  # torch is not followed
    """Which of two equal sums is larger: rounding decides."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(-1, 1, 64))

    def forward(self, x: Any) -> Any:
        products = x * self.weight
        ids = torch.stack([products.sum(-1), products.flip(-1).cumsum(-1)[..., -1]], -1).argmax(-1)
        if x.shape[0] == 2:
            ids = ids + 7
        return ids


class _Cancelling(nn.Module):  # type: ignore[misc]  # torch is not followed
    """Honest: a channel that cancels to nothing, one that is tiny, and others."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(64, 8)

    def forward(self, x: Any) -> Any:
        y = self.linear(x)
        rest = (y - y.mean(-1, keepdim=True)).sum(-1, keepdim=True)
        return torch.cat([y, rest, y[..., :1] * 1e-6], -1)


def detector() -> tuple[nn.Module, Any]:
    """Return the model and its example."""
    return _Detector().eval(), torch.randn(2, 3, 8, 8)


def masked() -> tuple[nn.Module, Any]:
    """Return the model and its example."""
    return _Masked().eval(), torch.randn(2, 8)


def tied_ids() -> tuple[nn.Module, Any]:
    """Return the model and its example."""
    return _TiedIds().eval(), torch.randn(2, 16, 64)


def cancelling() -> tuple[nn.Module, Any]:
    """Return the model and its example."""
    return _Cancelling().eval(), torch.randn(2, 40, 64)
