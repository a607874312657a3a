"""A torchvision classifier with random weights that computes like a trained one.

A new model's batch normalizations expect mean 0 and variance 1 everywhere, which random weights do
not give. Layer by layer the signal vanishes: a new MobileNetV3 answers 1e-10, which FP16 rounds to
0. Here the normalizations see a few batches first. Where trained weights are at hand, use those:
``trtdeploy export torchvision:mobilenet_v3_large --weights FILE``, or ``--download``.

``trtdeploy export models/examples/settled_classifier.py:make --config name=mobilenet_v3_large
--dynamic x:0=batch,2=height,3=width -o mobilenet_v3_large.onnx``
"""

from __future__ import annotations

import torch
import torchvision
from torch import Tensor, nn

BATCHES = 4


def make(name: str = "mobilenet_v3_large", size: int = 224) -> tuple[nn.Module, dict[str, Tensor]]:
    """Return the model, always the same one, and an example.

    Args:
        name: As in ``torchvision.models.list_models()``.
        size: Height and width of the images that the normalizations see.
    """
    torch.manual_seed(0)
    model: nn.Module = torchvision.models.get_model(name, weights=None).train()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = None  # the mean over all batches
    with torch.no_grad():
        for _ in range(BATCHES):
            model(torch.randn(8, 3, size, size))
    return model.eval(), {"x": torch.randn(2, 3, 128, 160)}
