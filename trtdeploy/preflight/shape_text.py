"""Sizes as people read them."""

from __future__ import annotations

from collections.abc import Sequence

from trtdeploy.core.tensors import Dim


def format_dims(dims: Sequence[Dim | None] | None) -> str:
    """Return ``[batch, ?, 16]``, ``(scalar)`` for rank 0, ``(rank unknown)`` for None."""
    if dims is None:
        return "(rank unknown)"
    if not dims:
        return "(scalar)"
    return f"[{', '.join('?' if dim is None else str(dim) for dim in dims)}]"
