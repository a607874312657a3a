"""Image models of frameworks, with example images: they say little about what they take."""

from __future__ import annotations

from collections.abc import Callable

import torch

from trtdeploy.core.errors import InputError
from trtdeploy.export.arguments import parse_settings
from trtdeploy.export.framework_import import explain_failed_build
from trtdeploy.export.pytorch.autocast import ignore_autocast
from trtdeploy.export.pytorch.flat_module import FlatModule
from trtdeploy.export.pytorch.quiet import quiet_frameworks
from trtdeploy.export.pytorch.source import TorchSource, list_parameters
from trtdeploy.export.pytorch.weights import load_weights
from trtdeploy.export.request import ExportRequest

_BATCH, _STEP = 2, 32
_IMAGE_AXES = {0: "batch", 2: "height", 3: "width"}


def build_image_model(
    request: ExportRequest,
    framework: str,
    name: str,
    build: Callable[[bool, dict[str, object]], torch.nn.Module],
) -> tuple[torch.nn.Module, list[str]]:
    """Have a framework build a model, with trained weights where there are any.

    Args:
        request: Weights, settings, and whether weights may be fetched.
        framework: Named in errors, as in ``timm:NAME``.
        name: What the framework calls the model.
        build: Called with whether to fetch trained weights, and with the settings.

    Returns:
        The model, and what the user should know about its weights.

    Raises:
        InputError: The settings or the weights do not fit it.
        NotPossibleError: The weights cannot be fetched.
    """
    trained = request.download and request.weights is None
    settings = parse_settings(request.config)
    with quiet_frameworks():
        try:
            model = build(trained, settings)
        except Exception as error:
            label = f"{framework}:{name}" + (f" with {settings}" if settings else "")
            raise explain_failed_build(label, error, downloads=trained) from error
    if request.weights is not None:
        return model, load_weights(model, request.weights)
    return model, [] if trained else [
        f"{name} has random weights: give trained ones with --weights FILE, or --download"
    ]  # fmt: skip


def make_image_source(
    model: torch.nn.Module, size: int, notes: list[str], *, channels: int = 3
) -> TorchSource:
    """Return a source whose images vary in height and width where the model allows that.

    Args:
        model: Takes one tensor, batch x channels x height x width.
        size: The height it was made for.
        notes: What the user should know about it already.
        channels: Red, green and blue, unless it was made for others.
    """
    name = next(iter(list_parameters(model)), "images")
    model.eval()
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
