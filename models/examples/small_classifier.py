"""An image classifier of a few thousand weights that takes any batch, height and width.

``trtdeploy export models/examples/small_classifier.py:SmallClassifier
--input images:float32:2x3x64x64 --dynamic images:0=batch,2=height,3=width
-o small_classifier.onnx``
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn


class SmallClassifier(nn.Module):
    """Three convolutions that halve the image, a mean over it, and ten classes.

    Args:
        width: Channels of the first convolution.
    """

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        channels = (3, width, 2 * width, 4 * width)
        layers: list[nn.Module] = []
        for before, after in pairwise(channels):
            layers += [nn.Conv2d(before, after, 3, 2, 1), nn.BatchNorm2d(after), nn.SiLU()]
        self.features = nn.Sequential(*layers)
        self.classes = nn.Linear(4 * width, 10)

    def forward(self, images: Tensor) -> Tensor:
        """Return the scores of images of shape (batch, 3, height, width): (batch, 10)."""
        scores: Tensor = self.classes(self.features(images).mean((2, 3)))
        return scores


def make() -> tuple[nn.Module, dict[str, Tensor]]:
    """Return the model, always the same one, and an example."""
    torch.manual_seed(0)
    return SmallClassifier().eval(), {"images": torch.randn(2, 3, 64, 64)}
