"""What a tensor looks like from outside: name, element type, shape."""

from __future__ import annotations

from dataclasses import dataclass

from trtdeploy.core.dtypes import DType

Dim = int | str
Shape = tuple[Dim, ...]
"""A shape; a symbolic dimension is a ``str`` (``"?3"`` for an unnamed one), never -1."""


@dataclass(frozen=True)
class TensorSpec:
    """An input or output of a model.

    Attributes:
        name: Exactly as the model spells it; may hold spaces, colons, any script.
        dtype: Element type.
        shape: Dimensions, or None when the model does not even state the rank.
        is_shape_tensor: The *values* of this input decide shapes inside the model.
    """

    name: str
    dtype: DType
    shape: Shape | None
    is_shape_tensor: bool = False

    @property
    def rank(self) -> int | None:
        """Number of dimensions; 0 for a scalar, None when unknown."""
        return None if self.shape is None else len(self.shape)

    @property
    def dynamic_axes(self) -> tuple[int, ...]:
        """Positions whose size is symbolic."""
        return tuple(i for i, dim in enumerate(self.shape or ()) if isinstance(dim, str))

    @property
    def is_dynamic(self) -> bool:
        """True when an optimization profile must give sizes for this tensor."""
        return self.shape is None or bool(self.dynamic_axes)


def format_shape(shape: Shape | None) -> str:
    """Return ``1x3xHxW``, ``scalar`` for rank 0, ``unknown rank`` for None."""
    if shape is None:
        return "unknown rank"
    return "x".join(str(dim) for dim in shape) if shape else "scalar"
