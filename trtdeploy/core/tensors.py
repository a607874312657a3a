"""What a tensor looks like from outside: name, element type, shape."""

from __future__ import annotations

from dataclasses import dataclass

from trtdeploy.core.dtypes import DType

Dim = int | str
Shape = tuple[Dim, ...]
"""A shape; a symbolic dimension is a ``str`` (``"?3"`` for an unnamed one), never -1."""


@dataclass(frozen=True)
class SizeRule:
    """The sizes that a model accepts for one symbol.

    Attributes:
        symbol: The symbol.
        multiple_of: Only multiples of it are accepted.
        min: Smallest accepted size.
        max: Largest accepted size; None when there is no limit.
    """

    symbol: str
    multiple_of: int = 1
    min: int = 1
    max: int | None = None

    def accepts(self, size: int) -> bool:
        """Tell whether the model takes this size."""
        too_large = self.max is not None and size > self.max
        return size >= self.min and not too_large and size % self.multiple_of == 0

    def nearest(self, size: int) -> int:
        """Return the accepted size closest to ``size``, the larger of two equally close ones."""
        step = self.multiple_of
        lowest = -(-self.min // step) * step
        rounded = max((size + step // 2) // step * step, lowest)
        return rounded if self.max is None else max(min(rounded, self.max // step * step), lowest)

    def __str__(self) -> str:
        """Return ``multiples of 32 from 64 up to 512``."""
        words = f"multiples of {self.multiple_of}" if self.multiple_of > 1 else "sizes"
        words += f" from {self.min}" if self.min > self.multiple_of else ""
        return words if self.max is None else f"{words} up to {self.max}"

    def to_dict(self) -> dict[str, int | None]:
        """Return plain data, as files keep it."""
        return {"multiple_of": self.multiple_of, "min": self.min, "max": self.max}


@dataclass(frozen=True)
class TensorSpec:
    """An input or output of a model.

    Attributes:
        name: Exactly as the model spells it; may hold spaces, colons, any script.
        dtype: Element type.
        shape: Dimensions, or None when the model does not even state the rank.
        is_shape_tensor: The *values* of this input decide shapes inside the model.
        size_rules: What the model says about the sizes of its symbols.
    """

    name: str
    dtype: DType
    shape: Shape | None
    is_shape_tensor: bool = False
    size_rules: tuple[SizeRule, ...] = ()

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
