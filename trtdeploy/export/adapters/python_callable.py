"""``module:callable``: any PyTorch module, or a function that makes one."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from trtdeploy.core.errors import InputError, UsageError
from trtdeploy.core.names import suggest_name
from trtdeploy.export.arguments import parse_settings
from trtdeploy.export.pytorch.code_place import is_framework_file
from trtdeploy.export.pytorch.quiet import quiet_frameworks
from trtdeploy.export.pytorch.source import TorchSource
from trtdeploy.export.pytorch.weights import load_weights
from trtdeploy.export.request import ExportRequest


def load_source(request: ExportRequest, name: str) -> TorchSource:
    """Import the module and call the callable, with ``--config`` as keyword arguments.

    The callable may be an ``nn.Module`` already, its class, or a function. It may return the model
    alone, or ``(model, example)``, where the example is a tensor, a tuple of positional arguments
    or a dictionary of named ones.

    Raises:
        UsageError: No such module or callable, or it returns no model.
        InputError: Its code fails.
    """
    module_name, _, attribute = name.rpartition(":")
    found: Any = _import(module_name)
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise UsageError(
                f"{module_name} has no {part!r}",
                hint=suggest_name(part, [n for n in vars(found) if not n.startswith("_")]),
            )
        found = getattr(found, part)
    made = _call(found, request, name)
    model, example = made if isinstance(made, tuple) and len(made) == 2 else (made, ())  # noqa: PLR2004
    if not isinstance(model, torch.nn.Module):
        raise UsageError(
            f"{name} gives a {type(model).__name__}; a torch.nn.Module was expected",
            hint="Let it return the model, or (model, example inputs).",
        )
    notes = load_weights(model, request.weights) if request.weights else []
    if isinstance(example, Mapping):
        return TorchSource(model, (), dict(example), notes=notes)
    positional = tuple(example) if isinstance(example, (tuple, list)) else (example,)
    return TorchSource(model, positional, notes=notes)


def _import(name: str) -> ModuleType:
    is_file = name.endswith(".py")
    if is_file and not Path(name).is_file():
        raise UsageError(f"{name} does not exist or is no file", hint="Check the path.")
    # the user's code lies where the command is typed, or beside the file that is named
    for folder in (Path.cwd(), Path(name).resolve().parent if is_file else Path.cwd()):
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    try:
        with quiet_frameworks():
            return _load_file(Path(name)) if is_file else importlib.import_module(name)
    except ImportError as error:
        raise UsageError(
            f"{name} cannot be imported: {error}",
            hint="Modules are looked for in this folder and in the environment; the path of a .py "
            "file works too.",
        ) from error
    except Exception as error:
        raise InputError(
            f"{name} fails while it is imported: {_describe(error)}",
        ) from error


def _load_file(path: Path) -> ModuleType:
    # copy.py must not become everybody's copy
    taken = path.stem in sys.modules or path.stem in sys.stdlib_module_names
    name = f"_source_{path.stem}" if taken else path.stem
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is no Python file", hint="Check the path.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _describe(error: Exception) -> str:
    """Return the error with the innermost line of the user's own code."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not is_framework_file(frame.filename)]
    place = f" ({Path(own[-1].filename).name} line {own[-1].lineno}: {own[-1].line})" if own else ""
    return f"{type(error).__name__}: {error}{place}"


def _call(found: Any, request: ExportRequest, name: str) -> Any:
    settings = parse_settings(request.config)
    if isinstance(found, torch.nn.Module):
        if settings:
            raise UsageError(f"{name} is a model already; --config would have no effect")
        return found
    if not callable(found):
        raise UsageError(f"{name} is a {type(found).__name__}; something callable was expected")
    try:
        with quiet_frameworks():
            return found(**settings)
    except Exception as error:
        raise InputError(
            f"{name}({', '.join(f'{k}={v!r}' for k, v in settings.items())}) fails: "
            f"{_describe(error)}",
            hint="Arguments are given with --config NAME=VALUE.",
        ) from error
