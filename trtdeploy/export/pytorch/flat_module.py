"""FlatModule: any model as a function of tensors to tensors, so that names are ours to give."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from trtdeploy.core.errors import UsageError
from trtdeploy.export.pytorch.autocast import ignore_autocast
from trtdeploy.export.pytorch.source import TorchSource
from trtdeploy.export.pytorch.structure import flatten, rebuild


class _Names:
    """Names of the outputs; outside the module's own state, which an export must not change."""

    def __init__(self) -> None:
        self.found: tuple[str, ...] = ()


class FlatModule(torch.nn.Module):  # type: ignore[misc]  # torch is not followed
    """Calls a model with tensors in a row; returns its tensors in a row.

    Args:
        source: The model and its example arguments.
    """

    def __init__(self, source: TorchSource) -> None:
        super().__init__()
        # some exporters end by putting everything into the mode of the outermost module
        self.training = False
        self.trtdeploy_model = source.module  # WRAPPER of graph_edit
        self._arguments = (source.args, dict(source.kwargs))
        self._names = _Names()
        self._given = source.output_names

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Run the model.

        Raises:
            UsageError: It returns something that is not made of tensors.
        """
        args, kwargs = rebuild(self._arguments, iter(tensors))
        named = list(flatten(self.trtdeploy_model(*args, **kwargs)))
        if not named:
            raise UsageError("the model returns no tensor", hint="Export a model that does.")
        self._names.found = name_outputs([path for path, _ in named], self._given)
        return tuple(tensor for _, tensor in named)

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the outputs of the last run."""
        return self._names.found

    def run(self, feeds: Mapping[str, torch.Tensor]) -> dict[str, Any]:
        """Run without gradients; return numpy arrays by output name."""
        with torch.no_grad(), ignore_autocast():
            results = self(*feeds.values())
        return dict(
            zip(self.output_names, (r.detach().cpu().numpy() for r in results), strict=True)
        )


def name_outputs(paths: list[str], given: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return unique ONNX names: ``output`` for one tensor, ``output0`` ... for a tuple."""
    if len(given) == len(paths):
        return given
    names: list[str] = []
    for path in paths:
        name = path or "output"
        name = f"output{name}" if name[0].isdigit() else name
        while name in names:
            name += "_"
        names.append(name)
    return tuple(names)
