"""Ultralytics models (``yolov8n.yaml``, ``yolov8n.pt``), if the user has that package.

Ultralytics is AGPL-3.0. trtdeploy does not depend on it, does not ship it, and imports it only when
such a source is named.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from trtdeploy.core.errors import InputError, UsageError
from trtdeploy.export.arguments import parse_settings
from trtdeploy.export.exporting import refuse_options
from trtdeploy.export.framework_import import import_framework
from trtdeploy.export.pytorch.quiet import quiet_frameworks
from trtdeploy.export.pytorch.source import TorchSource
from trtdeploy.export.request import ExportRequest

_INSTALL = "pip install ultralytics (its licence is AGPL-3.0, or a commercial one of Ultralytics)"
_EXAMPLE = (2, 3, 128, 160)
"""Two images, multiples of the largest stride (32), and no two sizes alike."""
_LAYERS = {"images": {0: "batch", 2: "height", 3: "width"}}


def load_source(request: ExportRequest, name: str) -> TorchSource:
    """Load the model, fuse its normalizations and switch its head to export.

    A ``.pt`` file is a pickle: loading it runs code of whoever made it, as Ultralytics itself does.

    Raises:
        InputError: The file does not exist, or Ultralytics cannot load it.
        UsageError: ``--weights`` is given: the ``.pt`` file is the source itself.
    """
    refuse_options(request, "Ultralytics", "weights")
    package: Any = import_framework(
        "ultralytics", needed_for="Ultralytics models", install=_INSTALL
    )
    if Path(name).suffix == ".pt" and not Path(name).is_file() and not request.download:
        raise InputError(
            f"{name} does not exist here",
            hint="Give --download to let Ultralytics fetch it, or name the file; "
            f"{Path(name).stem}.yaml builds the same model with random weights.",
        )
    settings = parse_settings(request.config)
    if settings:
        raise UsageError("--config has no meaning for an Ultralytics source")
    with quiet_frameworks():
        try:
            model = package.YOLO(name).model
        except (OSError, ValueError, RuntimeError, AttributeError, TypeError, KeyError) as error:
            raise InputError(f"Ultralytics cannot load {name}: {error}") from error
        model = model.float().eval().fuse()
    _switch_heads(model)
    notes = [] if Path(name).suffix == ".pt" else ["random weights: a .yaml holds none"]
    channels = int(getattr(model, "yaml", {}).get("channels", _EXAMPLE[1]))
    example = torch.rand((_EXAMPLE[0], channels, *_EXAMPLE[2:]), generator=_seeded())
    return TorchSource(_Named(model), (example,), dynamic=_LAYERS, notes=notes)


def _seeded() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def _switch_heads(model: torch.nn.Module) -> None:
    """Let heads return the one tensor that their own exporter would have them return."""
    for module in model.modules():
        if hasattr(module, "export"):
            module.export = True
            if hasattr(module, "dynamic"):
                module.dynamic = True
            if hasattr(module, "format"):
                module.format = "onnx"


class _Named(torch.nn.Module):  # type: ignore[misc]  # torch is not followed
    """Calls the input ``images``, as Ultralytics' own export does."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: torch.Tensor) -> Any:
        """Run the model."""
        return self.model(images)
