"""What operators do with the values of an operand: pass on, look up a row, test, or size.

Slots are counted from 0 (ONNX operator specification; com.microsoft operators after
ContribOperators.md of ONNX Runtime).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from onnx import NodeProto

from trtdeploy.graph.shape_values import SHAPE_SLOTS

Sizes = tuple[int | str | None, ...]

ANY_SLOT: Final = range(1 << 16)

PASSING: Final[dict[str, range | tuple[int, ...]]] = {
    **dict.fromkeys(
        (
            "Cast", "CastLike", "Ceil", "Expand", "Flatten", "Floor", "Gather", "GatherElements",
            "GatherND", "Identity", "Pad", "ReduceMax", "ReduceMin", "Reshape", "Round", "Slice",
            "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze",
        ),
        (0,),
    ),
    "Concat": ANY_SLOT,
    "ScatterElements": (0, 2),
    "ScatterND": (0, 2),
    "Where": (1, 2),
}  # fmt: skip
"""Slots whose values, or some of them, come out again."""

TESTING: Final[dict[str, range | tuple[int, ...]]] = {
    "And": ANY_SLOT, "Or": ANY_SLOT, "Xor": ANY_SLOT, "Not": (0,), "Where": (0,), "Compress": (1,),
}  # fmt: skip
"""Slots that are read as true or false, one answer per element."""

_SIGNED: Final = {"Pad", "Range", "Slice", "Squeeze", "Unsqueeze"}

SIZING: Final[dict[str, tuple[int, ...]]] = {
    **{op: slots for op, slots in SHAPE_SLOTS.items() if op not in _SIGNED},
    "Div": (1,),
    "Loop": (0,),
    "Mod": (1,),
    "NonMaxSuppression": (2,),
    "Range": (1, 2),
    "ReverseSequence": (1,),
}
"""Slots where zero or less makes no sense."""


def _along_axis(node: NodeProto, sizes: Sizes, attribute: str = "axis", default: int = 0) -> Sizes:
    axis = next((a.i for a in node.attribute if a.name == attribute), default)
    return sizes[axis : axis + 1 or None] if -len(sizes) <= axis < len(sizes) else (None,)


def _along_first_axes(node: NodeProto, sizes: Sizes) -> Sizes:
    """Return the axes a tuple of indices may count; the smallest one is safe for all."""
    skipped = next((a.i for a in node.attribute if a.name == "batch_dims"), 0)
    return sizes[skipped:]


def _first(node: NodeProto, sizes: Sizes) -> Sizes:
    return sizes[:1]


def _time_axis(node: NodeProto, sizes: Sizes) -> Sizes:
    return _along_axis(node, sizes, "time_axis")


def _gather_axis(node: NodeProto, sizes: Sizes) -> Sizes:
    return _along_axis(node, sizes, "gather_axis")


def _last_by_default(node: NodeProto, sizes: Sizes) -> Sizes:
    return _along_axis(node, sizes, "axis", -1)


@dataclass(frozen=True)
class Lookup:
    """A slot whose values count rows of another operand.

    Attributes:
        slot: The operand with the row numbers.
        table_slot: The operand that has the rows.
        rows: Picks, from the sizes of the table, those that a row number must stay below.
        reaches_end: The number may equal the size (a length, not a row).
    """

    slot: int
    table_slot: int
    rows: Callable[[NodeProto, Sizes], Sizes]
    reaches_end: bool = False


LOOKUPS: Final[dict[str, tuple[Lookup, ...]]] = {
    "EmbedLayerNormalization": (Lookup(0, 2, _first), Lookup(1, 4, _first)),
    "Gather": (Lookup(1, 0, _along_axis),),
    "GatherBlockQuantized": (Lookup(1, 0, _gather_axis),),
    "GatherElements": (Lookup(1, 0, _along_axis),),
    "GatherND": (Lookup(1, 0, _along_first_axes),),
    "ReverseSequence": (Lookup(1, 0, _time_axis, reaches_end=True),),
    "RotaryEmbedding": (Lookup(3, 1, _first),),
    "Scatter": (Lookup(1, 0, _along_axis),),
    "ScatterElements": (Lookup(1, 0, _along_axis),),
    "ScatterND": (Lookup(1, 0, _along_first_axes),),
    "TopK": (Lookup(1, 0, _last_by_default, reaches_end=True),),
}
