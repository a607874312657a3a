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

_NESTS = ("ema", "model_ema", "state_dict_ema", "state_dict", "model_state_dict", "model", "module")
_PREFIXES = ("module.", "_orig_mod.", "model.")
_SHOWN = 4


def load_weights(model: torch.nn.Module, path: Path) -> None:
    """Put the weights of a file into a model.

    Knows plain state dictionaries, those nested in a training checkpoint (averaged weights first),
    safetensors, and the prefixes that DataParallel and torch.compile add.

    Raises:
        InputError: The file cannot be read, or its weights are not those of the model.
    """
    state = read_state(path)
    wanted = model.state_dict()
    for prefix in _PREFIXES:
        if not wanted.keys() & state.keys() and all(name.startswith(prefix) for name in state):
            state = {name.removeprefix(prefix): tensor for name, tensor in state.items()}
    missing = [name for name in wanted if name not in state and "num_batches_tracked" not in name]
    other = [n for n in state if n in wanted and state[n].shape != wanted[n].shape]
    check_loaded(str(path), missing, other, "Name the very model these weights belong to.")
    unknown = [name for name in state if name not in wanted]
    if unknown:
        raise InputError(
            f"{path}: {len(unknown)} of its weights have no place in the model: {_show(unknown)}",
            hint="Name the very model these weights belong to, e.g. with --config num_classes=N.",
        )
    model.load_state_dict(state, strict=False)


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


def read_state(path: Path) -> dict[str, torch.Tensor]:
    """Return the tensors of a file by name.

    Raises:
        InputError: It cannot be read, or holds objects whose loading would run code.
    """
    if path.suffix == ".safetensors":
        safetensors: Any = import_optional(
            "safetensors.torch",
            needed_for=f"reading {path.name}",
            install="pip install safetensors",
        )
        try:
            return dict(safetensors.load_file(path))
        except (OSError, ValueError, RuntimeError) as error:
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


def _find_state(loaded: Any, path: Path) -> dict[str, torch.Tensor]:
    while isinstance(loaded, Mapping):
        if loaded and all(isinstance(value, torch.Tensor) for value in loaded.values()):
            return dict(loaded)
        nested = next((loaded[key] for key in _NESTS if isinstance(loaded.get(key), Mapping)), None)
        if nested is None:
            break
        loaded = nested
    raise InputError(
        f"{path} holds no state dictionary",
        hint="Save one: torch.save(model.state_dict(), FILE).",
    )


def _show(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (" ..." if len(names) > _SHOWN else "")
