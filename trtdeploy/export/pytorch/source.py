"""What an adapter hands over: a module, example arguments, and what it knows about them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from trtdeploy.core.arrays import Array
from trtdeploy.core.errors import UsageError
from trtdeploy.export.pytorch.structure import find_constants, flatten
from trtdeploy.export.pytorch.wrappers import unwrap_module

ValueMaker = Callable[[np.random.Generator, tuple[int, ...]], Array]
"""Makes values of one input that the model accepts."""


@dataclass
class TorchSource:
    """A model in PyTorch that is ready to be exported.

    Attributes:
        module: The model; a ``torch.jit.ScriptModule`` is exported by the TorchScript exporter.
        args: Positional example arguments, nested as ``forward`` takes them.
        kwargs: Named example arguments.
        dynamic: Default symbol by axis by input; None derives it from ranks and types.
        limits: Largest size by symbol, where the model says so.
        makers: How to make values of an input; others follow ``--input`` or their type.
        positional_names: Names for ``args``; empty takes those of the parameters of ``forward``.
        program: An exported program, where the source is one; its dynamic sizes are decided.
        notes: What the user should know.
    """

    module: torch.nn.Module
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    dynamic: Mapping[str, Mapping[int, str]] | None = None
    limits: Mapping[str, int] = field(default_factory=dict)
    makers: dict[str, ValueMaker] = field(default_factory=dict)
    positional_names: tuple[str, ...] = ()
    program: torch.export.ExportedProgram | None = None
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Take wrappers off, of which names and exporters must see nothing."""
        self.module = unwrap_module(self.module)

    def named_arguments(self) -> dict[str, Any]:
        """Return all arguments by parameter name, in the order they are passed."""
        return {**dict(zip(self._positional_names(), self.args, strict=True)), **self.kwargs}

    def named_tensors(self) -> dict[str, torch.Tensor]:
        """Return every example tensor by the name its ONNX input gets.

        Raises:
            UsageError: The arguments hold no tensor at all.
        """
        tensors = dict(flatten(self.named_arguments()))
        if not tensors:
            raise UsageError(
                "the model has no example inputs",
                hint="Give one --input NAME:DTYPE:SHAPE per parameter of its forward, e.g. "
                f"--input {next(iter(list_parameters(self.module)), 'x')}:float32:2x3x224x224",
            )
        return tensors

    def constants(self) -> dict[str, Any]:
        """Return arguments that are no tensors: the export fixes them."""
        return dict(find_constants(self.named_arguments()))

    def _positional_names(self) -> list[str]:
        names = list(self.positional_names) or list_parameters(self.module, keyword_only=False)
        spare = [f"input{index}" for index in range(len(names), len(self.args))]
        return [*names, *spare][: len(self.args)]


def list_parameters(module: torch.nn.Module, *, keyword_only: bool = True) -> list[str]:
    """Return the names of the parameters of ``forward``; empty where they cannot be told."""
    if isinstance(module, torch.jit.ScriptModule):
        try:
            arguments = module.forward.schema.arguments
        except (AttributeError, RuntimeError):
            return []
        return [argument.name for argument in arguments[1:]]  # the first is the module itself
    try:
        parameters = inspect.signature(module.forward).parameters.values()
    except (TypeError, ValueError):
        return []
    kinds: list[Any] = [
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        *([inspect.Parameter.KEYWORD_ONLY] if keyword_only else []),
    ]
    return [parameter.name for parameter in parameters if parameter.kind in kinds]
