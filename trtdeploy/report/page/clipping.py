"""How hard each tensor is clipped: its amax as a share of its largest magnitude."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trtdeploy.calibration.summary import TensorRange
from trtdeploy.report.number_text import format_figure, format_share, shorten
from trtdeploy.report.page.listing import Listing, limit_entries

MOST_COLUMNS, MOST_ROWS = 150, 12
HARD = 0.5
"""Below this the largest value loses more than half of itself."""
_NAME_CHARACTERS = 80


@dataclass(frozen=True)
class ClippedTensor:
    """A tensor whose amax lies below its largest magnitude.

    Attributes:
        amax_text: Where it is clipped.
        largest_text: Its largest magnitude.
        kept: Amax over largest magnitude, 0 to 1.
    """

    name: str
    method: str
    amax_text: str
    largest_text: str
    kept: float

    @property
    def is_hard(self) -> bool:
        """True when it is worth a look."""
        return self.kept < HARD

    @property
    def percent(self) -> float:
        """Length of its bar, which never vanishes."""
        return max(1.0, round(100 * self.kept, 1))


@dataclass(frozen=True)
class ClippingColumn:
    """One tensor, or several neighbours of a long model, of which the hardest clipped counts."""

    percent: float
    is_hard: bool
    title: str


@dataclass(frozen=True)
class ClippingPicture:
    """All tensors in graph order, and the hardest clipped by name.

    Attributes:
        columns: Empty when no tensor is clipped.
        tensors_per_column: 1, or more for a model with more tensors than columns.
        hardest: The hardest clipped first; only what is clipped.
        text: The picture in words.
        one_sided: Tensors that are never negative.
    """

    columns: tuple[ClippingColumn, ...]
    tensors_per_column: int
    hardest: Listing[ClippedTensor]
    text: str
    one_sided: int


def draw_clipping(tensors: Mapping[str, TensorRange]) -> ClippingPicture:
    """Return the picture of a calibration's tensors."""
    measured = [_measure_tensor(name, entry) for name, entry in tensors.items()]
    clipped = sorted((t for t in measured if t.kept < 1), key=lambda t: t.kept)
    hard = sum(tensor.is_hard for tensor in clipped)
    per_column = max(1, math.ceil(len(measured) / MOST_COLUMNS))
    columns = (
        _make_column(measured[start : start + per_column])
        for start in range(0, len(measured) if clipped else 0, per_column)
    )
    text = f"{len(clipped)} of {len(measured)} tensors are clipped"
    if hard:
        text += f", {hard} of them below half of their largest magnitude"
    one_sided = sum(entry.one_sided for entry in tensors.values())
    hardest = limit_entries(clipped, MOST_ROWS)
    return ClippingPicture(tuple(columns), per_column, hardest, text, one_sided)


def _measure_tensor(name: str, entry: TensorRange) -> ClippedTensor:
    amax, largest = entry.amax, entry.largest
    # A tensor of zeros, and one whose figures were not finite, has nothing that can be clipped.
    kept = 1.0
    if amax is not None and largest is not None and 0 <= amax < largest < math.inf:
        kept = amax / largest
    return ClippedTensor(name, entry.method, format_figure(amax), format_figure(largest), kept)


def _make_column(tensors: Sequence[ClippedTensor]) -> ClippingColumn:
    hardest = min(tensors, key=lambda tensor: tensor.kept)
    title = f"{shorten(hardest.name, _NAME_CHARACTERS)} · {describe_clipping(hardest)}"
    return ClippingColumn(hardest.percent, hardest.is_hard, title)


def describe_clipping(tensor: ClippedTensor) -> str:
    """Return ``clipped at 3.2 of 4.1 (78 %)``."""
    if tensor.kept >= 1:
        return f"not clipped, largest magnitude {tensor.largest_text}"
    return f"clipped at {tensor.amax_text} of {tensor.largest_text} ({format_share(tensor.kept)})"
