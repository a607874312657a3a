"""The model as a row of coloured cells, and its FP32 nodes grouped by the rule that kept them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trtdeploy.core.dtypes import DType
from trtdeploy.precision.plan import NodeDecision, PrecisionRecord
from trtdeploy.report.number_text import count_noun, shorten
from trtdeploy.report.page.rule_groups import RuleGroup, group_by_rule

MOST_CELLS = 2100
_NAME_CHARACTERS, _REASON_CHARACTERS = 80, 100
_WIDTHS = {
    "float32": "f32", "float64": "f32", "float16": "f16", "bfloat16": "bf16",
    "float8e4m3fn": "f8", "float8e5m2": "f8", "int8": "i8", "uint8": "i8",
}  # fmt: skip
_WIDEST_FIRST = ("f32", "bf16", "f16", "f8", "i8", "other")


@dataclass(frozen=True)
class Cell:
    """One node, or several neighbours of a very long model.

    Attributes:
        kind: Class of its colour.
        title: Name, type and reason.
    """

    kind: str
    title: str


@dataclass(frozen=True)
class LegendEntry:
    """One type that occurs, with its share of the nodes."""

    kind: str
    dtype: str
    count: int
    share: float


@dataclass(frozen=True)
class PrecisionMap:
    """Everything the page shows of the plan.

    Attributes:
        cells: In graph order.
        nodes_per_cell: 1, or more for a model with more nodes than cells.
        legend: Types that occur, most frequent first.
        kept: FP32 nodes by rule, most frequent first.
    """

    cells: tuple[Cell, ...]
    nodes_per_cell: int
    legend: tuple[LegendEntry, ...]
    kept: tuple[RuleGroup, ...]


def build_precision_map(precision: PrecisionRecord) -> PrecisionMap:
    """Return cells, legend and groups of a plan."""
    nodes = list(precision.nodes.items())
    per_cell = max(1, math.ceil(len(nodes) / MOST_CELLS))
    counts = Counter(node.dtype for _, node in nodes)
    legend = [
        LegendEntry(find_kind(dtype), dtype.label, count, count / len(nodes))
        for dtype, count in counts.most_common()
    ]
    kept = group_by_rule((n, e.rule, e.reason) for n, e in nodes if e.dtype is DType.FLOAT32)
    return PrecisionMap(tuple(_make_cells(nodes, per_cell)), per_cell, tuple(legend), kept)


def find_kind(dtype: DType) -> str:
    """Return the class of a type's colour."""
    return _WIDTHS.get(dtype.label, "other")


def _make_cells(nodes: Sequence[tuple[str, NodeDecision]], per_cell: int) -> Iterator[Cell]:
    for start in range(0, len(nodes), per_cell):
        group = nodes[start : start + per_cell]
        # The widest type decides: a cell of many nodes must not hide the one that stayed FP32.
        name, node = min(group, key=lambda item: _WIDEST_FIRST.index(find_kind(item[1].dtype)))
        title = _describe_node(name, node)
        if per_cell > 1:
            counts = Counter(entry.dtype for _, entry in group).most_common()
            mixed = ", ".join(f"{count} {dtype.label}" for dtype, count in counts)
            title = f"nodes {start + 1} to {start + len(group)}: {mixed}; {title}"
        yield Cell(find_kind(node.dtype), title)


def _describe_node(name: str, node: NodeDecision) -> str:
    reason = "" if node.rule == "recipe" else f" · {shorten(node.reason, _REASON_CHARACTERS)}"
    return f"{shorten(name, _NAME_CHARACTERS)} · {node.dtype.label}{reason}"


def describe_map(precision_map: PrecisionMap) -> str:
    """Return the map in words, for those who cannot see it."""
    total = sum(entry.count for entry in precision_map.legend)
    parts = (f"{e.count} {e.dtype}" for e in precision_map.legend)
    return f"Precision of {count_noun(total, 'node')} in graph order: {', '.join(parts)}"
