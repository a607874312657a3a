"""Trained weights out of a file, loaded strictly and without running code from it."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from trtdeploy.core.errors import InputError
from trtdeploy.core.optional import import_optional
from trtdeploy.export.pytorch.quiet import quiet_frameworks
from trtdeploy.export.pytorch.wrappers import unwrap_module

_NESTS = ("ema", "model_ema", "state_dict_ema", "state_dict", "model_state_dict", "model", "module")
_PREFIXES = ("module.", "model.")
_COMPILED = "_orig_mod."
_SHOWN = 4


def load_weights(model: torch.nn.Module, path: Path) -> list[str]:
    """Put the weights of a file into a model; return what the user should know about them.

    Knows plain state dictionaries, those nested in a training checkpoint (averaged weights first),
    safetensors, and the prefixes that DataParallel and torch.compile add.

    Raises:
        InputError: The file cannot be read, or its weights are not those of the model.
    """
    nest, state = _read_state(path)
    model = unwrap_module(model)
    wanted = model.state_dict()
    state = _strip_prefixes(state, wanted)
    missing = [name for name in wanted if name not in state and "num_batches_tracked" not in name]
    other = [n for n in state if n in wanted and state[n].shape != wanted[n].shape]
    check_loaded(str(path), missing, other, "Name the very model these weights belong to.")
    _check_kinds(path, state, wanted)
    unknown = [name for name in state if name not in wanted]
    if unknown:
        raise InputError(
            f"{path}: {len(unknown)} of its weights have no place in the model: {_show(unknown)}",
            hint="Name the very model these weights belong to, e.g. with --config num_classes=N.",
        )
    model.load_state_dict(state, strict=False)
    return [f"of {path.name}, the weights under {nest!r} were taken"] if nest else []


def _strip_prefixes(
    state: Mapping[str, torch.Tensor], wanted: Mapping[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """Return the weights under the names they have without wrappers, however those nest."""
    state = {name.replace(_COMPILED, ""): tensor for name, tensor in state.items()}
    while state and not wanted.keys() & state.keys():
        prefix = next((p for p in _PREFIXES if all(name.startswith(p) for name in state)), None)
        if prefix is None:
            break
        state = {name.removeprefix(prefix): tensor for name, tensor in state.items()}
    return state


def _check_kinds(
    path: Path, state: Mapping[str, torch.Tensor], wanted: Mapping[str, torch.Tensor]
) -> None:
    """Refuse weights that PyTorch would cast: codes of a quantized model, complex numbers."""
    for name, tensor in state.items():
        if name in wanted and _kind(tensor) != _kind(wanted[name]):
            kind, expected = (str(t.dtype).removeprefix("torch.") for t in (tensor, wanted[name]))
            raise InputError(
                f"{path}: weight {name!r} is stored in {kind}, and the model has it in {expected}",
                hint="Quantized weights need their scales: export the quantized model itself; or "
                "save the weights as the model trains them.",
            )


def _kind(tensor: torch.Tensor) -> str:
    return "complex" if tensor.is_complex() else "real" if tensor.is_floating_point() else "whole"


def check_loaded(label: str, missing: Sequence[str], mismatched: Sequence[Any], hint: str) -> None:
    """Refuse a model of which some weights would stay random.

    Raises:
        InputError: Names the weights.
    """
    if mismatched:
        names = [str(entry[0] if isinstance(entry, tuple) else entry) for entry in mismatched]
        raise InputError(
            f"{label}: {len(names)} weights have another shape than the model: {_show(names)}",
            hint=hint,
        )
    if missing:
        names = sorted(missing)
        raise InputError(
            f"{label} lacks {len(names)} weights of the model, which would stay random: "
            f"{_show(names)}",
            hint=hint,
        )


def _read_state(path: Path) -> tuple[str, dict[str, torch.Tensor]]:
    """Return the tensors of a file by name, and the key of the checkpoint they lie under."""
    if path.suffix == ".safetensors":
        safetensors: Any = import_optional(
            "safetensors.torch",
            needed_for=f"reading {path.name}",
            install="pip install safetensors",
        )
        try:
            return "", dict(safetensors.load_file(path))
        except Exception as error:  # SafetensorError is none of the built-in kinds
            raise InputError(f"{path} cannot be read as safetensors: {error}") from error
    try:
        with quiet_frameworks():
            loaded = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise InputError(
            f"{path} holds more than tensors, and loading it would run code from it",
            hint="Save the tensors alone: torch.save(model.state_dict(), FILE).",
        ) from error
    except (OSError, ValueError, RuntimeError, EOFError) as error:
        reason = str(error).split(". ", maxsplit=1)[0]
        raise InputError(f"{path} cannot be read by PyTorch as weights: {reason}") from error
    return _find_state(loaded, path)


def _find_state(loaded: Any, path: Path) -> tuple[str, dict[str, torch.Tensor]]:
    nest: list[str] = []
    while isinstance(loaded, Mapping):
        if loaded and all(isinstance(value, torch.Tensor) for value in loaded.values()):
            return ".".join(nest), dict(loaded)
        key = next((key for key in _NESTS if isinstance(loaded.get(key), Mapping)), None)
        if key is None:
            break
        nest.append(key)
        loaded = loaded[key]
    raise InputError(
        f"{path} holds no state dictionary",
        hint="Save one: torch.save(model.state_dict(), FILE).",
    )


def _show(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (" ..." if len(names) > _SHOWN else "")
