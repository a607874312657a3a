"""Example inputs out of ``--input``, and values for inputs at any size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from trtdeploy.core.arrays import Array
from trtdeploy.core.dtypes import DType
from trtdeploy.core.errors import UsageError
from trtdeploy.core.names import suggest_name
from trtdeploy.core.tensors import TensorSpec
from trtdeploy.export.arguments import INPUT_DTYPES
from trtdeploy.export.pytorch.source import TorchSource, ValueMaker, list_parameters
from trtdeploy.export.request import InputSpec

_TORCH_TYPES = {dtype: getattr(torch, label) for label, dtype in INPUT_DTYPES.items()}
_DTYPES = {torch_type: dtype for dtype, torch_type in _TORCH_TYPES.items()}


def describe_tensor(
    name: str, tensor: torch.Tensor, symbols: Mapping[int, str] | None = None
) -> TensorSpec:
    """Return what a tensor looks like as an input, its axes under their symbols."""
    shape = [size if isinstance(size, int) else str(size) for size in tensor.shape]
    for axis, symbol in (symbols or {}).items():
        shape[axis] = symbol
    return TensorSpec(name, _DTYPES.get(tensor.dtype, DType.UNDEFINED), tuple(shape))


def add_example_inputs(source: TorchSource, specs: Sequence[InputSpec], seed: int) -> None:
    """Put the inputs of ``--input`` in place of the source's own examples.

    Raises:
        UsageError: A name is no parameter of ``forward``.
    """
    if not specs:
        return
    parameters = list_parameters(source.module)
    rng = np.random.default_rng(seed)
    arguments: dict[str, Any] = {}
    for spec in specs:
        source.makers[spec.name] = _make_value_maker(spec)
        array = source.makers[spec.name](rng, spec.shape)
        tensor = torch.from_numpy(np.asarray(array)).to(_TORCH_TYPES[spec.dtype])
        _place(arguments, spec.name.split("."), tensor, spec.name)
    unknown = [name for name in arguments if parameters and name not in parameters]
    if unknown:
        raise UsageError(
            f"--input {unknown[0]!r}: forward has no such parameter; it takes "
            f"{', '.join(parameters)}",
            hint=suggest_name(unknown[0], parameters),
        )
    nested = {name: _to_sequences(value) for name, value in arguments.items()}
    if isinstance(source.module, torch.jit.ScriptModule) or not parameters:
        source.args, source.kwargs = tuple(nested.values()), {}
        source.positional_names = tuple(nested)
        return
    ordered = {name: nested[name] for name in parameters if name in nested}
    source.args, source.kwargs = (), ordered


def _place(arguments: dict[str, Any], path: list[str], tensor: torch.Tensor, name: str) -> None:
    for step in path[:-1]:
        arguments = arguments.setdefault(step, {})
        if not isinstance(arguments, dict):
            raise UsageError(f"--input {name!r}: {step!r} is a tensor and cannot hold another")
    if path[-1] in arguments:
        raise UsageError(f"--input {name!r} is given twice")
    arguments[path[-1]] = tensor


def _to_sequences(value: Any) -> Any:
    """Turn ``{"0": a, "1": b}`` into a tuple; other dictionaries stay."""
    if not isinstance(value, dict):
        return value
    entries = {key: _to_sequences(entry) for key, entry in value.items()}
    return (
        tuple(entries.values()) if list(entries) == list(map(str, range(len(entries)))) else entries
    )


def _make_value_maker(spec: InputSpec) -> ValueMaker:
    """Return what makes values of an input as ``--input`` limits them."""

    def make(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        if spec.dtype is DType.BOOL:
            return np.asarray(rng.integers(0, 2, shape), np.bool_)
        if _TORCH_TYPES[spec.dtype].is_floating_point:
            if spec.low is None or spec.high is None:
                return np.asarray(rng.standard_normal(shape), np.float32)
            return np.asarray(rng.uniform(spec.low, spec.high, shape), np.float32)
        low, high = int(spec.low or 0), 1 if spec.high is None else int(spec.high)
        return np.asarray(rng.integers(low, high, shape, endpoint=True), np.int64)

    return make


def make_feeds(
    source: TorchSource, shapes: Mapping[str, tuple[int, ...]], seed: int
) -> dict[str, torch.Tensor]:
    """Make one tensor per input at the given shapes, of the type of its example.

    An input nobody says anything about gets values in the range of its example, if it holds
    integers: those are known to be legal.
    """
    rng = np.random.default_rng(seed)
    feeds = {}
    for name, example in source.named_tensors().items():
        maker = source.makers.get(name) or _make_value_maker(_limit_values(name, example))
        array = np.asarray(maker(rng, shapes[name]))
        feeds[name] = torch.from_numpy(array).to(example.dtype)
    return feeds


def _limit_values(name: str, example: torch.Tensor) -> InputSpec:
    dtype = _DTYPES.get(example.dtype, DType.UNDEFINED)
    if dtype is DType.UNDEFINED:
        raise UsageError(f"input {name!r} is {example.dtype}, which ONNX files cannot take")
    whole = not example.is_floating_point() and dtype is not DType.BOOL and example.numel() > 0
    low, high = (float(example.min()), float(example.max())) if whole else (None, None)
    return InputSpec(name, dtype, tuple(example.shape), low, high)
