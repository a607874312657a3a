"""A text encoder with a mask, and a part of it that its author keeps in FP32.

``trtdeploy export models/examples/small_encoder.py:make
--dynamic ids:0=batch,1=sequence --dynamic mask:0=batch,1=sequence -o small_encoder.onnx``
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

TOKENS = 100


class SmallEncoder(nn.Module):
    """One layer of attention over embedded tokens, and their mean.

    Args:
        width: Of an embedding; four heads share it.
    """

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, width)
        self.queries, self.keys, self.values = (nn.Linear(width, width) for _ in range(3))
        self.norm = nn.LayerNorm(width)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return one embedding per text: (batch, width).

        Args:
            ids: Tokens, int64 of shape (batch, sequence).
            mask: 1 for a token and 0 for padding, int64 of the same shape.
        """
        found = self.embedding(ids)
        queries, keys, values = (
            layer(found).unflatten(-1, (4, -1)).transpose(1, 2)
            for layer in (self.queries, self.keys, self.values)
        )
        scores = queries @ keys.transpose(-1, -2) / keys.shape[-1] ** 0.5
        scores = scores.masked_fill(mask[:, None, None, :] == 0, -1e4)
        attended = (scores.softmax(-1) @ values).transpose(1, 2).flatten(2)
        with torch.autocast(found.device.type, enabled=False):
            normed = self.norm((found + attended).float())
        weights = mask.unsqueeze(-1).to(normed.dtype)
        mean: Tensor = (normed * weights).sum(1) / weights.sum(1).clamp(min=1)
        return mean


def make() -> tuple[nn.Module, dict[str, Tensor]]:
    """Return the model and an example."""
    torch.manual_seed(0)
    ids = torch.randint(0, TOKENS, (2, 12))
    return SmallEncoder().eval(), {"ids": ids, "mask": torch.ones_like(ids)}
