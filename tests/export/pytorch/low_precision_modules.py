"""Models that say something about precision, or were stored in a low one; imported by name."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class AutocastOn(nn.Module):
    """Its author wants FP16 on CUDA, which PyTorch turns off where there is none."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        with torch.autocast("cuda", dtype=torch.float16):
            y = self.first(x)
        return self.second(y)


class Block(nn.Module):
    def __init__(self, *, autocast: bool) -> None:
        super().__init__()
        self.fc, self.autocast = nn.Linear(8, 8), autocast

    def forward(self, x: Any) -> Any:
        with torch.autocast("cpu", enabled=self.autocast):
            return self.fc(x).exp()


class OneOfThree(nn.Module):
    """Three blocks of the same code, of which the second is in FP32."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(*(Block(autocast=on) for on in (True, False, True)))

    def forward(self, x: Any) -> Any:
        return self.blocks(x)


class BlockInRoot(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        x = self.first(x)
        with torch.autocast("cuda", enabled=False):
            x = x.exp()
        return self.second(x)


class Switch(nn.Module):
    """Mixed precision is a setting of it, and the setting is off."""

    def __init__(self, spare: int = 0) -> None:
        super().__init__()
        self.fc, self.spare = nn.Linear(8, 8), spare

    def forward(self, x: Any) -> Any:
        with torch.autocast("cpu", enabled=False):
            x = self.fc(x).exp()
        for _ in range(self.spare):
            x = x.sin()
        return x


class CastsInside(nn.Module):
    """FP16 as it is written into a graph: casts, new tensors, a constant."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(8, 4)
        self.shift = torch.arange(4.0).half()

    def forward(self, x: Any) -> Any:
        y = self.fc(x.to(self.fc.weight.dtype)) + torch.ones(4, dtype=self.fc.weight.dtype)
        return (y + self.shift).float().softmax(-1).half()


class RaisesError(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def forward(self, x: Any) -> Any:
        if self.kind == "KeyError":
            return {"a": x}["b"]
        if self.kind == "AttributeError":
            return self.missing
        if self.kind == "ZeroDivisionError":
            return x / (1 // 0)
        raise LookupError("own kinds, too")


class Quantizer(nn.Module):
    """Fake-quantization as NVIDIA's tools have it: checks its range by value."""

    fake_quant = True

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("amax", torch.tensor(4.0))

    def forward(self, x: Any) -> Any:
        if self.amax < 0:
            raise ValueError("no range")
        return torch.fake_quantize_per_tensor_affine(x, float(self.amax) / 127, 0, -128, 127)


class Quantized(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.quantizer, self.fc = Quantizer(), nn.Linear(8, 4)

    def forward(self, x: Any) -> Any:
        return self.fc(self.quantizer(x))


class AdaptiveNorm(nn.Module):
    """Instance normalization as a batch normalization of one sample."""

    def forward(self, x: Any) -> Any:
        batch, channels, height, width = x.shape
        x = x.reshape(1, batch * channels, height, width)
        x = nn.functional.batch_norm(x, None, None, None, None, training=True)
        return x.reshape(batch, channels, height, width)
