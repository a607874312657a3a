"""``model.pt2``: a program that ``torch.export.save`` wrote."""

from __future__ import annotations

import contextlib
import importlib
import re
import zipfile
from typing import Final

import torch

from trtdeploy.core.errors import InputError
from trtdeploy.export.exporting import refuse_options
from trtdeploy.export.pytorch.quiet import quiet_frameworks
from trtdeploy.export.pytorch.source import TorchSource
from trtdeploy.export.request import ExportRequest

_REGISTRARS: Final = (
    "torch.ao.quantization.fx._decomposed",
    "torchao.quantization.pt2e.quantize_pt2e",
)
"""Modules that register ``quantized_decomposed``, the operators of pt2e quantization."""

_OPERATOR = re.compile(rb"torch\.ops\.(?P<namespace>\w+)\.(?P<name>\w+)")


def load_source(request: ExportRequest, name: str) -> TorchSource:
    """Load the program; its own example inputs and dynamic sizes are used.

    Raises:
        InputError: The file is no exported program, or was saved without example inputs.
        UsageError: Inputs or weights were given: a program has its own.
    """
    refuse_options(request, "pt2", "inputs", "weights", "config")
    with quiet_frameworks():
        _register_quantization()
        try:
            program = torch.export.load(name)
        except Exception as error:
            raise _explain_failure(name, error) from error
        if program.example_inputs is None:
            raise InputError(
                f"{name} was saved without example inputs",
                hint="torch.export.save keeps those of torch.export.export; save it again.",
            )
        args, kwargs = program.example_inputs
        return TorchSource(program.module(), tuple(args), dict(kwargs), program=program)


def _register_quantization() -> None:
    for module in _REGISTRARS:
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
            return


def _explain_failure(name: str, error: Exception) -> InputError:
    unknown = _find_unknown_operators(name)
    if unknown:
        return InputError(
            f"{name} uses operators that nothing has registered: {', '.join(unknown)}",
            hint="Export it with FILE.py:make, where FILE.py imports the package that registers "
            f"them and make() returns torch.export.load({name!r}).module().",
        )
    return InputError(
        f"{name} cannot be loaded by PyTorch {torch.__version__}: {error}",
        hint="Save it with torch.export.save of the same PyTorch.",
    )


def _find_unknown_operators(name: str) -> list[str]:
    found: set[tuple[str, str]] = set()
    try:
        with zipfile.ZipFile(name) as archive:
            for entry in archive.namelist():
                if entry.endswith(".json"):
                    matches = _OPERATOR.finditer(archive.read(entry))
                    found |= {(m["namespace"].decode(), m["name"].decode()) for m in matches}
    except (zipfile.BadZipFile, OSError):
        return []
    return sorted(
        f"{namespace}.{operator}"
        for namespace, operator in found
        if not hasattr(getattr(torch.ops, namespace), operator)
    )
