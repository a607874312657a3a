"""Models that keep state, write into inputs, loop over time, or are wrapped; imported by name."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn.utils import parametrizations


class WritesIntoInput(nn.Module):
    def forward(self, x: Any) -> Any:
        x.sub_(1).relu_()
        return x * 2, x


class CachedGrid(nn.Module):
    """Keeps a grid of the last size on itself, in an attribute and in a list."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 2, 4, 4)
        self.grid: Any = None
        self.sums: list[Any] = [None]

    def forward(self, x: Any) -> Any:
        y = self.conv(x)
        if self.grid is None or self.grid.shape != y.shape[2:]:
            self.grid = torch.arange(y.shape[2])[:, None] + torch.arange(y.shape[3])
            self.sums[0] = self.grid.sum(1, keepdim=True)
        return y + self.grid + self.sums[0]


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("runs", torch.zeros(1))

    def forward(self, x: Any) -> Any:
        self.runs = self.runs + 1
        return x + self.runs


class InputNamedOutput(nn.Module):
    def forward(self, x: Any) -> Any:
        return {"x": x * 2, "same": x}


class SizeOutput(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.relu(), x.shape[0], 3.0


class ComplexOutput(nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.fft.fft(x)


class Recurrent(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.rnn = getattr(nn, kind)(8, 8, batch_first=True)

    def forward(self, x: Any) -> Any:
        return self.rnn(x)[0][:, -1]


class ThroughNumpy(nn.Module):
    def forward(self, x: Any) -> Any:
        return x + torch.from_numpy(x.detach().numpy())


class SizedTranspose(nn.Module):
    """Its output padding depends on whether a size is odd."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.up = nn.Conv2d(3, 4, 3, 2, 1), nn.ConvTranspose2d(4, 3, 3, 2, 1)

    def forward(self, x: Any) -> Any:
        return self.up(self.down(x), output_size=x.shape[2:])


class CastsToHalf(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(8, 8).half()

    def forward(self, x: Any) -> Any:
        return self.fc(x.half())


def net() -> nn.Module:
    """Return what the wrapped models below wrap."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU())


def wrapped(order: str) -> nn.Module:
    """Return a model inside wrappers, the outermost first, and inside another module."""
    wraps: dict[str, Any] = {
        "compile": torch.compile,
        "parallel": nn.DataParallel,
        "inside": nn.Sequential,
    }
    model = net()
    for name in reversed(order.split(",")):
        model = wraps[name](model)
    return model


def parametrized() -> nn.Module:
    """Return a model with weights that are computed from others."""
    return nn.Sequential(
        parametrizations.orthogonal(nn.Linear(8, 8)),
        parametrizations.weight_norm(nn.Linear(8, 8)),
    )
