"""FlatModule: any model as a function of tensors to tensors, so that names are ours to give."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from trtdeploy.core.errors import InputError, TrtdeployError, UsageError
from trtdeploy.export.pytorch.autocast import ignore_autocast
from trtdeploy.export.pytorch.code_place import find_place_of_error
from trtdeploy.export.pytorch.failure import explain_run_failure
from trtdeploy.export.pytorch.source import TorchSource
from trtdeploy.export.pytorch.structure import find_constants, flatten, rebuild
from trtdeploy.export.pytorch.wrappers import ignore_compilation


class _LastRun:
    """What is known of the results; outside the module's own state, which no export may change."""

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ()
        self.notes: list[str] = []


class FlatModule(torch.nn.Module):  # type: ignore[misc]  # torch is not followed
    """Calls a model with tensors in a row; returns its tensors in a row.

    Args:
        source: The model and its example arguments.
        widened: Whether weights or examples were made FP32, which code that casts may not bear.
    """

    def __init__(self, source: TorchSource, *, widened: bool = False) -> None:
        super().__init__()
        # some exporters end by putting everything into the mode of the outermost module
        self.training = False
        self.trtdeploy_model = source.module  # WRAPPER of graph_edit
        self._arguments = (source.args, dict(source.kwargs))
        self._input_names = list(source.named_tensors())
        self._widened = widened
        self._last = _LastRun()

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Run the model.

        Raises:
            UsageError: It returns something that is not made of tensors.
            InputError: It returns complex numbers.
        """
        args, kwargs = rebuild(self._arguments, iter(tensors))
        result = self.trtdeploy_model(*args, **kwargs)
        named = list(flatten(result))
        if not named:
            raise UsageError("the model returns no tensor", hint="Export a model that does.")
        paths = [path for path, _ in named]
        self._last.names = _name_outputs(paths, self._input_names)
        self._last.notes = _note_outputs(result, paths, self._last.names)
        for name, (_, tensor) in zip(self._last.names, named, strict=True):
            if tensor.is_complex():
                raise InputError(
                    f"output {name!r} is complex, which the outputs of an ONNX file cannot be",
                    hint="Return torch.view_as_real(y), or what is made of it.",
                )
        return tuple(tensor for _, tensor in named)

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the outputs of the last run."""
        return self._last.names

    @property
    def notes(self) -> list[str]:
        """What the user should know about the outputs of the last run."""
        return self._last.notes

    def call(self, feeds: Mapping[str, torch.Tensor], times: int = 1) -> tuple[torch.Tensor, ...]:
        """Run without gradients; neither the feeds nor the model are changed by it.

        Args:
            feeds: Tensors by input.
            times: How often to run in a row; each run finds what the one before left in the model,
                and the last one gives the results.

        Raises:
            InputError: The model's code fails, in whatever way; names module and line.
        """
        results: tuple[torch.Tensor, ...] = ()
        try:
            with torch.no_grad(), ignore_compilation(), restore_state(self.trtdeploy_model):
                for _ in range(times):
                    results = self(*(tensor.clone() for tensor in feeds.values()))
        except TrtdeployError:
            raise
        except Exception as error:
            if find_place_of_error(error, self) is None:
                raise  # the model was not running: the fault is ours
            shapes = ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in feeds.items())
            raise explain_run_failure(error, self, shapes, widened=self._widened) from error
        return results

    def run(self, feeds: Mapping[str, torch.Tensor], times: int = 1) -> dict[str, Any]:
        """Run as ``call`` does, in FP32; return numpy arrays by output name."""
        with ignore_autocast():
            results = self.call(feeds, times)
        named = zip(self.output_names, results, strict=True)
        return {name: _to_numpy(name, tensor) for name, tensor in named}


def _to_numpy(name: str, tensor: torch.Tensor) -> Any:
    try:
        return tensor.detach().cpu().numpy()
    except TypeError as error:
        raise InputError(
            f"output {name!r} is {tensor.dtype}, which cannot be compared: {error}",
            hint="Return it as .float().",
        ) from error


@contextlib.contextmanager
def restore_state(model: torch.nn.Module) -> Iterator[None]:
    """Undo what the code of a model does to its attributes meanwhile, e.g. to a cached grid.

    Lists and dictionaries get their entries back, buffers so their tensors; what was written into a
    tensor stays.
    """
    modules = [m for m in model.modules() if not isinstance(m, torch.jit.ScriptModule)]
    attributes = [vars(module) for module in modules]
    held = [value for a in attributes for value in a.values() if isinstance(value, (list, dict))]
    saved = [(value, value.copy()) for value in (*attributes, *held)]
    try:
        yield
    finally:
        for value, entries in saved:
            value.clear()
            (value.update if isinstance(value, dict) else value.extend)(entries)


def _name_outputs(paths: Sequence[str], taken: Sequence[str] = ()) -> tuple[str, ...]:
    """Return unique ONNX names: ``output`` for one tensor, ``output0`` ... for a tuple.

    An output of a name that is taken, by an input, gets ``_out`` appended.
    """
    names: list[str] = []
    for path in paths:
        name = path or "output"
        name = f"output{name}" if name[0].isdigit() else name
        name = f"{name}_out" if name in taken else name
        while name in names or name in taken:
            name += "_"
        names.append(name)
    return tuple(names)


def _note_outputs(result: Any, paths: Sequence[str], names: Sequence[str]) -> list[str]:
    notes = [
        f"output {path!r} is called {name!r}: an input has that name"
        for path, name in zip(paths, names, strict=True)
        if name == f"{path}_out"
    ]
    plain = [path for path, _ in find_constants(result)]
    if plain:
        notes.append(f"outputs that are no tensors are left out: {', '.join(_name_outputs(plain))}")
    return notes
