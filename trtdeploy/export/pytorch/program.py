"""Exported programs (``torch.export``): which of their sizes vary is decided inside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from trtdeploy.config.axis_roles import find_role_by_position
from trtdeploy.core.errors import InputError
from trtdeploy.export.pytorch.example import describe_tensor

Axes = dict[str, dict[int, str]]


def read_user_values(program: torch.export.ExportedProgram, count: int) -> list[Any]:
    """Return the fake tensors of the last ``count`` placeholders: the inputs of the user."""
    nodes = [node for node in program.graph.nodes if node.op == "placeholder"]
    return [node.meta.get("val") for node in nodes[len(nodes) - count :]]


def read_program_axes(
    program: torch.export.ExportedProgram,
    names: Sequence[str],
    asked: Mapping[str, Mapping[int, str]] | None,
) -> Axes:
    """Return the program's own dynamic axes, under the user's symbols where they are given.

    Raises:
        InputError: An axis that the user names is fixed in the program.
    """
    symbols: dict[str, str] = {}
    axes: Axes = {name: {} for name in names}
    for name, value in zip(names, read_user_values(program, len(names)), strict=True):
        if not isinstance(value, torch.Tensor):
            continue
        given = (asked or {}).get(name, {})
        for axis, size in enumerate(value.shape):
            if isinstance(size, torch.SymInt):
                own = str(size.node.expr)
                role = find_role_by_position(describe_tensor(name, value), axis)
                guess = symbols.get(own) or role or f"{name}_{axis}"
                taken = guess in symbols.values() and symbols.get(own) != guess
                symbols.setdefault(own, given.get(axis) or (f"{name}_{axis}" if taken else guess))
                axes[name][axis] = symbols[own]
            elif axis in given:
                raise InputError(
                    f"{given[axis]!r} (axis {axis} of {name!r}) is asked to vary, but the exported "
                    f"program fixes it to {size}",
                    hint="Make it dynamic where the program is made: torch.export.export(model, "
                    f"args, dynamic_shapes={{{name!r}: {{{axis}: Dim({given[axis]!r})}}}}).",
                )
    return axes
