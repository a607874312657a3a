"""Example images for models that say little about what they take."""

from __future__ import annotations

import torch

from trtdeploy.core.errors import InputError
from trtdeploy.export.pytorch.autocast import ignore_autocast
from trtdeploy.export.pytorch.flat_module import FlatModule
from trtdeploy.export.pytorch.quiet import quiet_frameworks
from trtdeploy.export.pytorch.source import TorchSource, list_parameters

_BATCH, _STEP = 2, 32
_IMAGE_AXES = {0: "batch", 2: "height", 3: "width"}


def make_image_source(
    model: torch.nn.Module, size: int, *, channels: int = 3, has_weights: bool, label: str
) -> TorchSource:
    """Return a source whose images vary in height and width where the model allows that.

    Args:
        model: Takes one tensor, batch x channels x height x width.
        size: The height it was made for.
        channels: Channels of an image.
        has_weights: Whether its weights are trained ones.
        label: Its name, for notes.
    """
    name = next(iter(list_parameters(model)), "images")
    model.eval()
    notes = [] if has_weights else [
        f"{label} has random weights: give trained ones with --weights FILE, or --download"
    ]  # fmt: skip
    images = _make_images(channels, size, size + _STEP)
    free = TorchSource(model, (images,), dynamic={name: _IMAGE_AXES}, notes=notes)
    if _runs(free):
        return free
    notes.append(f"height and width stay fixed at {size}: the model takes no other images")
    square = _make_images(channels, size, size)
    return TorchSource(model, (square,), dynamic={name: {0: "batch"}}, notes=notes)


def _make_images(channels: int, height: int, width: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.rand((_BATCH, channels, height, width), generator=generator)


def _runs(source: TorchSource) -> bool:
    with quiet_frameworks(), ignore_autocast():
        try:
            FlatModule(source).call(source.named_tensors())
        except InputError:
            return False
    return True
