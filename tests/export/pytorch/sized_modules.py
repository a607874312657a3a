"""Modules whose outputs have sizes that look like others."""

from __future__ import annotations

import torch
from torch import nn


class Strided(nn.Module):
    """Halves an image, and makes another twice as wide."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, stride=2, padding=1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return self.conv(x), torch.cat([x, x], 3), nn.functional.pad(x, (0, 0, 0, 1))
