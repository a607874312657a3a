"""What a dynamic axis stands for (batch, height, ...), and the sizes assumed for it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from trtdeploy.config.shape_table import AxisDefaults, AxisRange, AxisSizes
from trtdeploy.core.dtypes import DType
from trtdeploy.core.tensors import TensorSpec

AxisRole = Literal["batch", "height", "width", "sequence", "other"]

NAMED_ROLES: Final[tuple[AxisRole, ...]] = ("batch", "height", "width", "sequence")
"""Roles that a symbol table may name in place of a symbol."""

ASSUMED_SIZES: Final[dict[AxisRole, AxisRange]] = {
    "batch": AxisRange(1, 4, 8),
    "height": AxisRange(320, 640, 1280),
    "width": AxisRange(320, 640, 1280),
    "sequence": AxisRange(1, 128, 512),
    "other": AxisRange(1, 16, 64),
}
"""Used where the deploy profile has no default of its own."""

# Detectors and segmenters halve their input up to five times: sizes off 32 fail inside.
_IMAGE_STEP: Final = 32
_CHANNEL_COUNTS: Final = (1, 3, 4)
_ROLE_WORDS: Final[dict[str, AxisRole]] = {
    "batch": "batch", "batchsize": "batch", "bs": "batch", "bsz": "batch",
    "height": "height", "width": "width",
    "sequence": "sequence", "seq": "sequence", "seqlen": "sequence", "length": "sequence",
    "len": "sequence", "tokens": "sequence", "time": "sequence", "frames": "sequence",
}  # fmt: skip
# Only when the letter is the whole name: the n of n_pos is no batch.
_ROLE_LETTERS: Final[dict[str, AxisRole]] = {
    "n": "batch", "b": "batch", "h": "height", "w": "width",
    "s": "sequence", "t": "sequence", "l": "sequence",
}  # fmt: skip
_NCHW_ROLES: Final[dict[int, AxisRole]] = {2: "height", 3: "width"}
_NHWC_ROLES: Final[dict[int, AxisRole]] = {1: "height", 2: "width"}
_INTEGERS: Final = frozenset({DType.INT32, DType.INT64})


@dataclass(frozen=True)
class AxisPlace:
    """One axis of one input."""

    input_name: str
    axis: int

    def __str__(self) -> str:
        """Return ``images axis 2``."""
        return f"{self.input_name} axis {self.axis}"


@dataclass(frozen=True)
class DynamicAxis:
    """A symbol with every place that carries it; unnamed axes are never tied to each other.

    Attributes:
        symbol: As the model spells it; starts with ``?`` when the model gives no name.
        role: What the axis seems to stand for.
        places: Where it occurs, in the order of the inputs.
    """

    symbol: str
    role: AxisRole
    places: tuple[AxisPlace, ...]

    @property
    def label(self) -> str:
        """Name for messages, e.g. ``'H' (images axis 2)``."""
        return f"{self.symbol!r} ({', '.join(map(str, self.places))})"


def is_anonymous(symbol: str) -> bool:
    """Tell whether the model gave this axis no name of its own."""
    return symbol.startswith("?")


def find_dynamic_axes(inputs: Sequence[TensorSpec]) -> tuple[DynamicAxis, ...]:
    """Return the dynamic axes of all inputs in order of appearance."""
    places: dict[tuple[str, AxisPlace | None], list[AxisPlace]] = {}
    for spec in inputs:
        for axis in spec.dynamic_axes:
            symbol = str((spec.shape or ())[axis])
            place = AxisPlace(spec.name, axis)
            # A file may say "?" for height and for width; that does not make them equal.
            places.setdefault((symbol, place if is_anonymous(symbol) else None), []).append(place)
    specs = {spec.name: spec for spec in inputs}
    others = _find_other_letters({symbol: tied for (symbol, _), tied in places.items()})
    return tuple(
        DynamicAxis(
            symbol, "other" if symbol in others else _find_role(symbol, tied, specs), tuple(tied)
        )
        for (symbol, _), tied in places.items()
    )


def _find_other_letters(places: Mapping[str, Sequence[AxisPlace]]) -> set[str]:
    """Return letters that name no batch, since another symbol does: the n of ``b x n``.

    The batch is the one on a first axis; where there is none, the one that comes first.
    """
    named = [symbol for symbol in places if find_role_by_name(symbol) == "batch"]
    batch = min(named, key=lambda symbol: min(p.axis for p in places[symbol]) > 0, default="")
    return {symbol for symbol in named if symbol != batch and symbol.lower() in _ROLE_LETTERS}


def find_role_by_name(symbol: str) -> AxisRole | None:
    """Return the role a symbol's name speaks of: ``seq_len`` is a sequence."""
    whole = _ROLE_LETTERS.get(symbol.lower())
    words = (_ROLE_WORDS.get(word) for word in re.split(r"[^a-z]+", symbol.lower()))
    return whole or next((role for role in words if role), None)


def find_role_by_position(spec: TensorSpec, axis: int) -> AxisRole | None:
    """Return the role an axis has in common layouts: NCHW, NHWC, token ids, N x S x features."""
    if axis == 0:
        return "batch"
    match spec.shape:
        case (_, channels, _, _) if channels in _CHANNEL_COUNTS:
            return _NCHW_ROLES.get(axis)
        case (_, _, _, channels) if channels in _CHANNEL_COUNTS:
            return _NHWC_ROLES.get(axis)
        case (_, _) if spec.dtype in _INTEGERS:
            return "sequence"
        case (_, _, int()) if axis == 1:
            return "sequence"
    return None


def _find_role(symbol: str, places: Sequence[AxisPlace], specs: dict[str, TensorSpec]) -> AxisRole:
    by_name = None if is_anonymous(symbol) else find_role_by_name(symbol)
    by_position = (find_role_by_position(specs[p.input_name], p.axis) for p in places)
    return by_name or next((role for role in by_position if role), None) or "other"


def find_default(role: AxisRole, defaults: AxisDefaults) -> AxisRange:
    """Return the sizes assumed for a role; always ``1 <= min <= opt <= max``."""
    given: AxisSizes | None = getattr(defaults, role)
    return (
        ASSUMED_SIZES[role] if given is None else complete_sizes(given, ASSUMED_SIZES[role], role)
    )


def complete_sizes(given: AxisSizes, default: AxisRange, role: AxisRole) -> AxisRange:
    """Fill the points that were left out so that ``min <= opt <= max`` holds.

    Args:
        given: Sizes that are in order among themselves.
        default: Sizes to fall back on; given ones push them up or down.
        role: From a lone ``opt``, images get half and double of it (in steps of 32 where ``opt``
            is one); other axes get the default's ends.
    """
    if given.min is None and given.max is None and given.opt and role in ("height", "width"):
        return _spread_image_size(given.opt)
    opt = given.opt
    if opt is None:
        opt = max(default.opt, given.min or 0)
        opt = opt if given.max is None else min(opt, given.max)
    smallest = min(default.min, opt) if given.min is None else given.min
    largest = max(default.max, opt) if given.max is None else given.max
    return AxisRange(smallest, opt, largest)


def _spread_image_size(opt: int) -> AxisRange:
    half = max(opt // 2, 1)
    if opt % _IMAGE_STEP == 0:
        half = max(half // _IMAGE_STEP * _IMAGE_STEP, _IMAGE_STEP)
    return AxisRange(half, opt, opt * 2)
