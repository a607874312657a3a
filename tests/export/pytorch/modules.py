"""Small PyTorch models, each with one thing that makes exporting hard; imported by name."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import nn


class Stage(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.drop = nn.Dropout(0.5)

    def forward(self, x: Any) -> Any:
        return self.drop(torch.relu(self.norm(self.conv(x))))


class Pyramid(nn.Module):
    """Two strides and an upsampling: takes multiples of 4; its head is pinned to FP32."""

    def __init__(self) -> None:
        super().__init__()
        self.stage = Stage()
        self.down = nn.Conv2d(4, 4, 3, stride=2, padding=1)
        self.up = nn.Upsample(scale_factor=2)
        self.norm = nn.LayerNorm(4)
        self.head = nn.Linear(4, 2)

    def forward(self, images: Any) -> dict[str, Any]:
        maps = self.stage(images)
        maps = maps + self.up(self.down(maps))
        with torch.autocast("cuda", enabled=False):
            pooled = self.norm(maps.float().mean((2, 3)))
        return {"logits": self.head(pooled), "maps": maps}


def pyramid() -> Any:
    torch.manual_seed(0)
    return Pyramid(), torch.randn(1, 3, 32, 48)


class Outer(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Any) -> Any:
        return self.inner(x)


class DataBranch(nn.Module):
    def forward(self, x: Any) -> Any:
        if x.mean() > -100:
            return x * 2
        return x - 1


class BakedBatch(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.reshape(2, -1)


class OneSample(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.reshape(1, 4) * 2


class SampleByBranch(nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.stack([x[index] * 2 for index in range(int(x.shape[0]))])


class AlwaysDropout(nn.Module):
    def forward(self, x: Any) -> Any:
        return nn.functional.dropout(x, 0.5, training=True)


class BatchStatistics(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(4, track_running_stats=False)

    def forward(self, x: Any) -> Any:
        return self.norm(x)


class StubbornDropout(nn.Dropout):
    def train(self, mode: bool = True) -> Any:
        return super().train(True)


class MixesSamples(nn.Module):
    def forward(self, x: Any) -> Any:
        return x - x.mean(0)


class PadsToEight(nn.Module):
    """Runs at every height, but the graph of a multiple of 8 holds for those alone."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, stride=2, padding=1)

    def forward(self, x: Any) -> Any:
        spare = x.shape[2] % 8
        if spare:
            x = nn.functional.pad(x, (0, 0, 0, 8 - spare))
        return self.conv(x)


def make(name: str) -> Any:
    return Outer(globals()[name]())


class Nested(nn.Module):
    def forward(self, batch: Any, pair: Any, scale: Any) -> Any:
        return batch["a"] * scale + pair[0], batch["ids"] + 1


@dataclasses.dataclass
class Pair:
    left: Any
    right: Any


class Dataclasses(nn.Module):
    def forward(self, pair: Pair, gain: float) -> Pair:
        return Pair(pair.left + pair.right, pair.left * gain)


def dataclasses_example() -> Any:
    return Dataclasses(), {"pair": Pair(torch.randn(1, 4), torch.randn(1, 4)), "gain": 3.0}


class Embedding(nn.Module):
    """Integer ids, a table of 64 positions, a scalar."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(50, 8)
        self.positions = nn.Parameter(torch.randn(64, 8))

    def forward(self, ids: Any, rate: Any) -> Any:
        positions = self.positions[: ids.shape[1]]
        return self.words(ids) + positions * torch.where(rate == 16000, 1.0, 2.0)


class Linear(nn.Module):
    def __init__(self, outputs: int = 4) -> None:
        super().__init__()
        self.fc = nn.Linear(8, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(x)


def half() -> Any:
    torch.manual_seed(0)
    return Linear().half(), torch.randn(1, 8).half()


class Exponential(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(cast_inputs=torch.float32, device_type="cuda")
    def forward(ctx: Any, x: Any) -> Any:
        return torch.exp(x)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient


class PinnedFunction(nn.Module):
    def forward(self, x: Any) -> Any:
        y = x * 2
        y = Exponential.apply(y)
        return y + 1


class QuantizedProgram(nn.Module):
    """Q/DQ as pt2e conversion leaves them: int8 weights, per-channel scales."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.register_buffer("weight", torch.randint(-127, 127, (4, 8), dtype=torch.int8))
        self.register_buffer("scale", torch.full((4,), 0.01))
        self.register_buffer("zero", torch.zeros(4, dtype=torch.int64))

    def forward(self, x: Any) -> Any:
        import torch.ao.quantization.fx._decomposed

        quantized = torch.ops.quantized_decomposed
        activation = (0.05, 0, -128, 127, torch.int8)
        x = quantized.quantize_per_tensor(x, *activation)
        x = quantized.dequantize_per_tensor(x, *activation)
        weight = quantized.dequantize_per_channel(
            self.weight, self.scale, self.zero, 0, -127, 127, torch.int8
        )
        return nn.functional.linear(x, weight)


def fake_quantized() -> Any:
    """A model in quantization-aware training, its observers still at work."""
    from torch.ao import quantization

    class FakeQuantized(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(8, 4)
            symmetric = {"quant_min": -128, "quant_max": 127, "dtype": torch.qint8}
            self.activation = quantization.FakeQuantize(
                observer=quantization.MovingAverageMinMaxObserver,
                qscheme=torch.per_tensor_symmetric,
                **symmetric,
            )
            self.weight = quantization.FakeQuantize(
                observer=quantization.MovingAveragePerChannelMinMaxObserver,
                qscheme=torch.per_channel_symmetric,
                ch_axis=0,
                **symmetric,
            )

        def forward(self, x: Any) -> Any:
            return nn.functional.linear(self.activation(x), self.weight(self.fc.weight))

    torch.manual_seed(0)
    model = FakeQuantized()
    for _ in range(3):
        model(torch.randn(16, 8))
    return model, torch.randn(1, 8)


class Eigenvalues(nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.linalg.eigvals(x).real


class WrongSizes(nn.Module):
    def forward(self, x: Any) -> Any:
        return x @ torch.zeros(3, 3)
