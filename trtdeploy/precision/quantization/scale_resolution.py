"""What only amax can decide: which values share a scale across a Concat."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from trtdeploy.core.errors import InputError
from trtdeploy.core.number_formats import QuantizedType
from trtdeploy.graph.index import ModelIndex
from trtdeploy.precision.quantization.layers import LAYER_OPERATORS
from trtdeploy.precision.quantization.operands import CONCAT, find_roots
from trtdeploy.precision.quantization.plan import QuantizationPlan, QuantizedOperand

MAX_SHARED_RATIO = 8.0
"""Members of a Concat share a scale up to this ratio of their ranges; the smallest loses 3 bits."""
MAX_MERGED_RATIO = 2.0
"""Layers that read a member directly take the shared scale up to this ratio, which costs 1 bit."""
_Group = tuple[str, QuantizedType]
_READERS = LAYER_OPERATORS | {"Add"}
"""Operators that compute with what they read in 8 bits; all others with a pair only move it."""


def resolve_scales(
    index: ModelIndex, plan: QuantizationPlan, amax: Mapping[str, float]
) -> QuantizationPlan:
    """Return the plan with one scale per group, now that the ranges are known.

    A Concat runs in 8 bits when its members have one scale. Members whose ranges differ by more
    than ``MAX_SHARED_RATIO`` would lose too much: such a Concat stays in floating point, and its
    result gets a pair of its own. A member that layers also read directly keeps a second, finer
    scale for those where the shared one would cost them more than a bit.

    Args:
        index: The model that was planned.
        plan: What was planned for it.
        amax: Clipping magnitude of each value in ``plan.measured``.

    Raises:
        InputError: A value has no amax: the calibration belongs to another model or recipe.
    """
    _require_amax(plan, amax)
    members = _find_members(index, plan)
    notes: list[str] = []
    for concat, roots in members.items():
        found = [amax[root] for root in roots]
        ratio = _measure_ratio(found)
        if ratio > MAX_SHARED_RATIO:
            notes.append(
                f"Concat {concat!r} stays in floating point: the ranges of what it joins "
                f"({min(f for f in found if f > 0):.3g} to {max(found):.3g}) differ {ratio:.3g}x, "
                f"and one scale serves {MAX_SHARED_RATIO:g}x at most"
            )
            members[concat] = []
    apart = {concat for concat, roots in members.items() if not roots}
    kept = _drop_uncarried(index, plan.operands, apart)
    groups = _GroupMerger(_find_directly_read(index, kept), amax)
    shared = {o.node: (o.group, o.kind) for o in kept if o.node in members}
    for concat, group in shared.items():
        for root in members[concat]:
            groups.merge((root, group[1]), group)
    operands = tuple(replace(o, group=groups.name_of((o.group, o.kind))) for o in kept)
    return replace(plan, operands=operands, notes=(*plan.notes, *notes))


def _find_members(index: ModelIndex, plan: QuantizationPlan) -> dict[str, list[str]]:
    """Return for each Concat that reads in 8 bits the values that its operands are measured on."""
    edges = {(o.node, o.slot) for o in plan.operands}
    roots = find_roots(index, edges)
    return {
        node.name: [roots.get(tensor, tensor) for tensor in node.input]
        for node in index.main.nodes
        if node.op_type == CONCAT and (node.name, 0) in edges
    }


def _drop_uncarried(
    index: ModelIndex, operands: Iterable[QuantizedOperand], apart: set[str]
) -> list[QuantizedOperand]:
    """Return the operands without those nodes, and without what only fed them in 8 bits."""
    kept = {(o.node, o.slot): o for o in operands if o.node not in apart}
    nodes = {node for node, _ in kept}
    main = index.main
    for node in reversed(main.nodes):
        if node.name not in nodes or node.op_type in _READERS:
            continue
        uses = [use for name in node.output for use in main.uses.get(name, [])]
        if not all((use.node.name, use.slot) in kept for use in uses):
            for slot in range(len(node.input)):
                kept.pop((node.name, slot), None)
    return list(kept.values())


def _find_directly_read(index: ModelIndex, operands: Iterable[QuantizedOperand]) -> set[_Group]:
    """Return the groups that layers compute with, rather than only move."""
    readers = {node.name for node in index.main.nodes if node.op_type in _READERS}
    return {(o.group, o.kind) for o in operands if o.node in readers}


def _require_amax(plan: QuantizationPlan, amax: Mapping[str, float]) -> None:
    missing = [name for name in plan.measured if name not in amax]
    if missing:
        raise InputError(
            f"the calibration has no amax for {missing[0]!r}"
            + (f" and {len(missing) - 1} more values" if len(missing) > 1 else "")
            + ": it was made for another model, recipe or set of pins",
            hint="Calibrate again with this model and recipe.",
        )


def _measure_ratio(amax: Iterable[float]) -> float:
    """Return the largest range divided by the smallest; a constant zero fits any scale."""
    positive = [each for each in amax if each > 0]
    return max(positive) / min(positive) if positive else 1.0


class _GroupMerger:
    """Which groups became one; each is named after its member with the largest amax."""

    def __init__(self, directly_read: set[_Group], amax: Mapping[str, float]) -> None:
        self._amax = amax
        self._parents: dict[_Group, _Group] = {}
        self._directly_read = set(directly_read)

    def name_of(self, group: _Group) -> str:
        """Return the value whose amax serves the whole group."""
        return self._find(group)[0]

    def merge(self, member: _Group, shared: _Group) -> None:
        """Give ``member`` the scale of ``shared``, unless layers that read it would suffer."""
        first, second = self._find(member), self._find(shared)
        if first == second:
            return
        low, high = sorted((self._amax[first[0]], self._amax[second[0]]))
        if first in self._directly_read and low * MAX_MERGED_RATIO < high and low > 0:
            return
        larger = self._amax[first[0]] > self._amax[second[0]]
        winner, loser = (first, second) if larger else (second, first)
        self._parents[loser] = winner
        if {first, second} & self._directly_read:
            self._directly_read.add(winner)

    def _find(self, group: _Group) -> _Group:
        while group in self._parents:
            group = self._parents[group]
        return group
