"""Ultralytics models (``yolov8n.yaml``, ``yolov8n.pt``), if the user has that package.

Ultralytics is AGPL-3.0. trtdeploy does not depend on it, does not ship it, and imports it only when
such a source is named.
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

import torch

from trtdeploy.core.errors import InputError, MissingDependencyError, UsageError
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
_SAFETY = {"ULTRALYTICS_SAFE_LOAD": "1", "YOLO_AUTOINSTALL": "false"}
"""Read while Ultralytics is imported: load known classes only, evaluate no text of a file, and
install no package that a file names."""


def load_source(request: ExportRequest, name: str) -> TorchSource:
    """Load the model, fuse its normalizations and switch its head to export.

    Files are loaded in the restricted way of Ultralytics, which runs no code out of them.

    Raises:
        InputError: The file does not exist, or Ultralytics cannot load it.
        MissingDependencyError: Ultralytics is not installed, or cannot load in that way.
        UsageError: ``--weights`` is given: the ``.pt`` file is the source itself.
    """
    refuse_options(request, "Ultralytics", "weights")
    if parse_settings(request.config):
        raise UsageError("--config has no meaning for an Ultralytics source")
    package = _import_restricted()
    _require_local(name, download=request.download)
    with quiet_frameworks():
        try:
            model = package.YOLO(name).model.float().eval().fuse()
        except Exception as error:
            raise InputError(
                f"Ultralytics cannot load {name}: {_first_line(error)}",
                hint="Its restricted loader takes models made of Ultralytics' and PyTorch's own "
                "classes. For any other that you trust, write FILE.py with a make() that returns "
                "the model, and export FILE.py:make.",
            ) from error
    _switch_heads(model)
    notes = [] if Path(name).suffix == ".pt" else ["random weights: a .yaml holds none"]
    channels = int(getattr(model, "yaml", {}).get("channels", _EXAMPLE[1]))
    example = torch.rand((_EXAMPLE[0], channels, *_EXAMPLE[2:]), generator=_seeded())
    return TorchSource(_Named(model), (example,), dynamic=_LAYERS, notes=notes)


def _import_restricted() -> Any:
    os.environ.update(_SAFETY)
    package = import_framework("ultralytics", needed_for="Ultralytics models", install=_INSTALL)
    with quiet_frameworks():
        tasks: Any = importlib.import_module("ultralytics.nn.tasks")
    if not hasattr(tasks, "SAFE_LOAD"):
        raise MissingDependencyError(
            f"Ultralytics {package.__version__} would run code out of the files it loads",
            hint="Install a newer one: pip install --upgrade ultralytics",
        )
    tasks.SAFE_LOAD = True  # a program may have imported it before
    return package


def _require_local(name: str, *, download: bool) -> None:
    path = Path(name)
    absent = path.suffix == ".pt" and not path.is_file()
    if download or not (absent or "://" in name):
        return
    raise InputError(
        f"{name} does not exist here",
        hint="Give --download to let Ultralytics fetch it, or name the file; "
        f"{path.stem}.yaml builds the same model with random weights.",
    )


def _first_line(error: Exception) -> str:
    """Return what Ultralytics itself says; the causes below it advise to load unsafely."""
    line = next(iter(str(error).splitlines()), "").rpartition("\ufe0f")[2].strip()
    return f"{type(error).__name__}: {line}".rstrip(": ")


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
