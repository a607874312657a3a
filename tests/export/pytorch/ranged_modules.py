"""Modules that take, or treat alike, only some sizes."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn


class SpecialOne(nn.Module):
    """Centres a sequence, unless it has one element."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[1] > 1:
            x = x - x.mean(1, keepdim=True)
        return x * 2


class Baked(nn.Module):
    """Divides by the length of the example, once traced."""

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return ids.float().cumsum(1) / float(int(ids.shape[1]))


class Shrinking(nn.Module):
    """Takes images from 7x7: a kernel of 7 in two steps."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 2, 5)
        self.pool = nn.MaxPool2d(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.pool(self.conv(x)).mean((2, 3))


class Anchored(nn.Module):
    """Takes anchors that have nothing to do with the batch."""

    def forward(self, x: torch.Tensor, anchors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.mean((1, 2, 3)), anchors * 2


class KeywordOnly(nn.Module):
    def forward(self, x: torch.Tensor, *, mask: torch.Tensor) -> torch.Tensor:
        return x * mask


def broken() -> Callable[[], nn.Module]:
    settings: dict[str, Callable[[], nn.Module]] = {}
    return settings["depth"]


class Positions(nn.Module):
    """Adds one of 16 positions to each token, and checks nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(50, 4), nn.Embedding(16, 4)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.words(ids) + self.positions(torch.arange(ids.shape[1]))


class Looping(nn.Module):
    """Goes through its batch in Python."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.stack([x[i] * 2 for i in range(x.size(0))])


class EightByEight(nn.Module):
    """Takes images of 8x8 alone, whatever the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, 4, 3, 2, 1), nn.Linear(64, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.conv(x).view(-1, 64))


class Patches(nn.Module):
    """Cuts images of any multiple of 8 into patches."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, c, h, w = x.shape
        x = x.reshape(b, c, h // 8, 8, w // 8, 8).permute(0, 2, 4, 3, 5, 1)
        return x.reshape(b, -1, 192).mean(2)


class Points(nn.Module):
    """Relates all points of a cloud."""

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        return points @ points.transpose(1, 2)
