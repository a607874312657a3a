"""Arguments and results of ``forward`` as named tensors: nested containers taken apart, and back.

Dictionaries, tuples, named tuples, lists and dataclasses nest; everything in them that is not a
tensor is a constant of the export.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from trtdeploy.core.errors import UsageError

_PLAIN = (
    bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device,
    torch.SymInt, torch.SymFloat, torch.SymBool,
)  # fmt: skip


def flatten(value: Any, path: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """Yield every tensor with its dotted path, e.g. ``batch.image`` or ``pair.0``.

    Raises:
        UsageError: Something inside is neither a tensor, a container nor a plain constant.
    """
    if isinstance(value, torch.Tensor):
        yield path, value
        return
    for key, entry in _entries(value, path):
        yield from flatten(entry, f"{path}.{key}" if path else str(key))


def find_constants(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield everything that an export fixes: plain values other than None, with their paths."""
    if isinstance(value, torch.Tensor) or value is None:
        return
    if isinstance(value, _PLAIN):
        yield path, value
        return
    for key, entry in _entries(value, path):
        yield from find_constants(entry, f"{path}.{key}" if path else str(key))


def rebuild(value: Any, tensors: Iterator[torch.Tensor]) -> Any:
    """Return ``value`` with its tensors replaced in the order ``flatten`` yields them."""
    if isinstance(value, torch.Tensor):
        return next(tensors)
    if isinstance(value, _PLAIN):
        return value
    entries = {key: rebuild(entry, tensors) for key, entry in _entries(value, "")}
    return _make_like(value, entries)


def _make_like(value: Any, entries: dict[Any, Any]) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, Mapping):
        return dataclasses.replace(value, **entries)  # type: ignore[type-var]
    if isinstance(value, Mapping):
        return entries if type(value) is dict else type(value)(entries)  # type: ignore[call-arg]
    if hasattr(value, "_fields"):
        return type(value)(*entries.values())
    make: Callable[[Any], Any] = type(value)
    return make(entries.values())


def _entries(value: Any, path: str) -> list[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        return list(value.items())
    if hasattr(value, "_fields"):
        return list(zip(value._fields, value, strict=True))
    if isinstance(value, (list, tuple)):
        return list(enumerate(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
    if isinstance(value, _PLAIN):
        return []
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    raise UsageError(
        f"{path or 'the result'!r} is a {kind}; tensors, dictionaries, tuples, lists and "
        "dataclasses can be exported",
        hint="Wrap the model in a module whose forward takes and returns those.",
    )
