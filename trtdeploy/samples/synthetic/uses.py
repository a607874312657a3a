"""What a model does with the values of an input, found by following them through the graph.

Its nodes pass values on, look up a row, test, or size. Slots of operators are counted from 0 (ONNX
operator specification; com.microsoft operators after ContribOperators.md of ONNX Runtime).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import numpy as np
from onnx import NodeProto, TensorProto, numpy_helper

from trtdeploy.core.arrays import Array
from trtdeploy.graph.index import ModelIndex, Scope, Use
from trtdeploy.graph.shape_values import SHAPE_SLOTS

Sizes = tuple[int | str | None, ...]
_ONE_HOT_CLASSES = 3  # an Equal with fewer constants in a row is a test, not a one-hot
_LARGEST_CONSTANT = 1 << 16

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
    "GatherBlockQuantized": (Lookup(1, 0, partial(_along_axis, attribute="gather_axis")),),
    "GatherElements": (Lookup(1, 0, _along_axis),),
    "GatherND": (Lookup(1, 0, _along_first_axes),),
    "ReverseSequence": (
        Lookup(1, 0, partial(_along_axis, attribute="time_axis"), reaches_end=True),
    ),
    "RotaryEmbedding": (Lookup(3, 1, _first),),
    "Scatter": (Lookup(1, 0, _along_axis),),
    "ScatterElements": (Lookup(1, 0, _along_axis),),
    "ScatterND": (Lookup(1, 0, _along_first_axes),),
    "TopK": (Lookup(1, 0, partial(_along_axis, default=-1), reaches_end=True),),
}


@dataclass
class InputUses:
    """What was found out about an input's values.

    Attributes:
        low: Smallest value that every lookup accepts.
        high: Largest value that every lookup accepts; None without a lookup.
        limit: Which node sets ``high``, for people.
        is_row_number: Some lookup reads the values.
        has_unknown_table: Some lookup reads a table of unknown size.
        compared: Constants that an Equal compares the values with.
        is_tested: The values are read as true or false.
        is_size: Zero or less makes no sense.
    """

    low: int = 0
    high: int | None = None
    limit: str = ""
    is_row_number: bool = False
    has_unknown_table: bool = False
    compared: set[float] = field(default_factory=set)
    is_tested: bool = False
    is_size: bool = False

    def restrict(self, trace: Trace, rows: int, node: NodeProto) -> None:
        """Keep ``trace`` at or above 0 and below ``rows``."""
        self.is_row_number = True
        high = math.floor((rows - 1 - trace.offset) / trace.factor)
        self.low = max(self.low, math.ceil(-trace.offset / trace.factor))
        if self.high is None or high < self.high:
            self.high = high
            self.limit = f"{node.op_type} {node.name!r} has {rows} rows"


@dataclass(frozen=True)
class Trace:
    """A value computed from an input: ``factor * input + offset``, elements moved about.

    Attributes:
        scope: The graph the value is named in.
        factor: Positive: the order of values is kept.
        offset: Largest constant added on the way.
    """

    scope: Scope
    name: str
    factor: float = 1.0
    offset: float = 0.0


class InputTracer:
    """Follows inputs of one model through its nodes, into sub-graphs and out of them."""

    def __init__(self, index: ModelIndex, sizes: Mapping[str, Sizes]) -> None:
        """Prepare to trace.

        Args:
            index: The model, its constants as initializers (``normalize_model``).
            sizes: Sizes of its values by name.
        """
        self._index = index
        self._sizes = sizes

    def find_uses(self, name: str) -> InputUses:
        """Return what the model does with the values of one input."""
        uses = InputUses()
        pending = [Trace(self._index.main, name)]
        seen: set[tuple[int, str]] = set()
        while pending:
            trace = pending.pop()
            owner = trace.scope.resolve(trace.name)
            if owner is None or (id(owner), trace.name) in seen:
                continue
            seen.add((id(owner), trace.name))
            pending.extend(_leave_body(trace))
            for use in owner.uses.get(trace.name, ()):
                pending.extend(self._follow(use, trace, uses))
        return uses

    def _follow(self, use: Use, trace: Trace, uses: InputUses) -> Iterator[Trace]:
        node, slot = use.node, use.slot
        self._note_lookups(use, trace, uses)
        uses.is_tested |= slot in TESTING.get(node.op_type, ()) or _casts_to_bool(node)
        uses.is_size |= slot in SIZING.get(node.op_type, ())
        if node.op_type == "Equal":
            self._note_comparison(use, uses)
        elif slot in PASSING.get(node.op_type, ()) and not _casts_to_bool(node):
            yield from (_moved(use, output, trace) for output in node.output if output)
        elif node.op_type in ("Add", "Sub", "Mul", "Div"):
            yield from self._follow_arithmetic(use, trace, uses)
        elif node.op_type == "Range" and slot in (0, 1):
            # The last number of a range lies one step below its limit.
            shifted = Trace(trace.scope, trace.name, trace.factor, trace.offset - slot)
            yield _moved(use, node.output[0], shifted)
        elif node.op_type in ("Loop", "Scan"):
            yield from _enter_body(use, trace)

    def _note_lookups(self, use: Use, trace: Trace, uses: InputUses) -> None:
        if use.node.op_type == "OneHot" and use.slot == 0:
            depth = self._read_constant(use, 1)
            self._note_rows(use.node, trace, (int(depth.max()),) if depth is not None else (), uses)
        for lookup in LOOKUPS.get(use.node.op_type, ()):
            if use.slot != lookup.slot or lookup.table_slot >= len(use.node.input):
                continue
            sizes = self._sizes.get(use.node.input[lookup.table_slot])
            rows = () if sizes is None else lookup.rows(use.node, sizes)
            moved = Trace(trace.scope, trace.name, trace.factor, trace.offset - lookup.reaches_end)
            self._note_rows(use.node, moved, rows, uses)

    @staticmethod
    def _note_rows(node: NodeProto, trace: Trace, rows: Sizes, uses: InputUses) -> None:
        uses.is_row_number = True
        known = [size for size in rows if isinstance(size, int)]
        if len(known) < len(rows) or not known:
            uses.has_unknown_table = True
        if known:
            uses.restrict(trace, min(known), node)

    def _note_comparison(self, use: Use, uses: InputUses) -> None:
        constant = self._read_constant(use, 1 - use.slot)
        if constant is None:
            return
        distinct = np.unique(constant)
        if distinct.size >= _ONE_HOT_CLASSES and np.array_equal(
            distinct, np.arange(distinct.size) + distinct[0]
        ):
            # An Equal with 0, 1, 2, ... is a one-hot written out.
            last = int(distinct[-1])
            if uses.high is None or last < uses.high:
                uses.high = last
                uses.limit = f"Equal {use.node.name!r} knows {distinct.size} classes"
            uses.is_row_number = True
        else:
            uses.compared.update(float(value) for value in distinct)

    def _follow_arithmetic(self, use: Use, trace: Trace, uses: InputUses) -> Iterator[Trace]:
        node, other = use.node, self._read_constant(use, 1 - use.slot)
        factor, offset = trace.factor, trace.offset
        if other is None or not other.size:
            # Something unknown is added: the input alone must still fit.
            if node.op_type == "Add":
                yield _moved(use, node.output[0], trace)
            return
        number = float(other.max())
        if node.op_type == "Sub" and use.slot == 1:
            uses.is_tested |= number == 1.0  # 1 - mask
            return
        if node.op_type in ("Add", "Sub"):
            offset += number if node.op_type == "Add" else -float(other.min())
        elif number <= 0 or (node.op_type == "Div" and use.slot == 1):
            return
        else:
            scale = number if node.op_type == "Mul" else 1 / number
            factor, offset = factor * scale, offset * scale
        yield _moved(use, node.output[0], Trace(trace.scope, trace.name, factor, offset))

    def _read_constant(self, use: Use, slot: int) -> Array | None:
        """Return a constant operand; None when it is computed, or large enough to lie on disk."""
        name = use.node.input[slot] if slot < len(use.node.input) else ""
        tensor = use.scope.constant_of(name) if name else None
        if tensor is None or name in self._index.model.weights:
            return None
        array = numpy_helper.to_array(tensor)
        numeric = array.dtype.kind in "iufb" and 0 < array.size <= _LARGEST_CONSTANT
        return array if numeric else None


def _moved(use: Use, output: str, trace: Trace) -> Trace:
    return Trace(use.scope, output, trace.factor, trace.offset)


def _casts_to_bool(node: NodeProto) -> bool:
    return node.op_type == "Cast" and any(
        a.name == "to" and a.i == TensorProto.BOOL for a in node.attribute
    )


def _enter_body(use: Use, trace: Trace) -> Iterator[Trace]:
    """Follow an operand of Loop or Scan to the body's input of the same position."""
    for body in use.scope.bodies_of(use.node):
        if use.slot < len(body.graph.input) and (use.node.op_type == "Scan" or use.slot > 1):
            name = body.graph.input[use.slot].name
            yield Trace(body, name, trace.factor, trace.offset)


def _leave_body(trace: Trace) -> Iterator[Trace]:
    """Follow a result of a body to the result of the node around it."""
    scope, owner = trace.scope, trace.scope.owner
    if owner is None or scope.parent is None:
        return
    for position, value in enumerate(scope.graph.output):
        outside = position - (owner.op_type == "Loop")  # a Loop's body first says whether to go on
        if value.name == trace.name and 0 <= outside < len(owner.output):
            yield Trace(scope.parent, owner.output[outside], trace.factor, trace.offset)
