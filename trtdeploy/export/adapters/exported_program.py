"""``model.pt2``: a program that ``torch.export.save`` wrote."""

from __future__ import annotations

import torch

from trtdeploy.core.errors import InputError
from trtdeploy.export.exporting import refuse_options
from trtdeploy.export.pytorch.quiet import quiet_frameworks
from trtdeploy.export.pytorch.source import TorchSource
from trtdeploy.export.request import ExportRequest


def load_source(request: ExportRequest, name: str) -> TorchSource:
    """Load the program; its own example inputs and dynamic sizes are used.

    Raises:
        InputError: The file is no exported program, or was saved without example inputs.
        UsageError: Inputs or weights were given: a program has its own.
    """
    refuse_options(request, "pt2", "inputs", "weights", "config")
    with quiet_frameworks():
        try:
            program = torch.export.load(name)
        except Exception as error:
            raise InputError(
                f"{name} cannot be loaded by PyTorch {torch.__version__}: {error}",
                hint="Save it with torch.export.save of the same PyTorch, and import what "
                "registers its operators.",
            ) from error
        if program.example_inputs is None:
            raise InputError(
                f"{name} was saved without example inputs",
                hint="torch.export.save keeps those of torch.export.export; save it again.",
            )
        args, kwargs = program.example_inputs
        return TorchSource(program.module(), tuple(args), dict(kwargs), program=program)
