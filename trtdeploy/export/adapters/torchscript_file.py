"""TorchScript files, as ``torch.jit.save`` wrote them."""

from __future__ import annotations

import torch

from trtdeploy.core.errors import InputError
from trtdeploy.export.exporting import refuse_options
from trtdeploy.export.pytorch.quiet import quiet_frameworks
from trtdeploy.export.pytorch.source import TorchSource
from trtdeploy.export.request import ExportRequest


def load_source(request: ExportRequest, name: str) -> TorchSource:
    """Load the file on the CPU; it says nothing of its inputs, so ``--input`` must.

    Raises:
        InputError: This PyTorch cannot read it.
        UsageError: Weights or settings were given: the file has its own.
    """
    refuse_options(request, "TorchScript", "weights", "config")
    with quiet_frameworks():
        try:
            module = torch.jit.load(name, map_location="cpu")
        except (RuntimeError, ValueError) as error:
            raise InputError(f"{name} cannot be loaded as TorchScript: {error}") from error
    notes = ["TorchScript records no module paths for modules that were traced"]
    return TorchSource(module, notes=notes if not list(module.named_children()) else [])
