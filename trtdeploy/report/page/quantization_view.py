"""The quantization section as the page shows it: verdict, shares, obstacles, layers, clipping."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trtdeploy.calibration.quantization_report import QuantizationReport
from trtdeploy.precision.audit.report import (
    LayerAudit,
    Obstacle,
    ObstacleKind,
    QuantizationAudit,
)
from trtdeploy.report.page.clipping import ClippingPicture, draw_clipping
from trtdeploy.report.page.listing import Listing, limit_entries
from trtdeploy.report.page.rule_groups import RuleGroup, group_by_rule

MOST_LAYERS, MOST_OBSTACLES, MOST_PLACES = 24, 20, 40
_KINDS = {"int8": "i8", "fp8": "f8", "fp8-e5m2": "f8", "fp16": "f16", "bf16": "bf16", "fp32": "f32"}
_MARKS = {True: "pass", False: "suspect", None: "unproven"}
_TITLES = {kind.value: kind.title for kind in ObstacleKind}


@dataclass(frozen=True)
class Segment:
    """One type's part of a bar.

    Attributes:
        kind: Class of its colour.
        share: Of the bar, 0 to 1.
    """

    kind: str
    runs_in: str
    count: int
    share: float


@dataclass(frozen=True)
class ShareBar:
    """How some amount of all layers divides among types; ``quantized`` is the part in 8 bits."""

    title: str
    quantized: float | None
    segments: tuple[Segment, ...]


@dataclass(frozen=True)
class LayerRow:
    """One layer.

    Attributes:
        kind: Class of the type's colour.
        share: Of the work of all layers; None when sizes are not known.
        obstacles: What is in its way, in words.
        reason: Why it was left alone, where nothing is in its way.
    """

    node: str
    op_type: str
    runs_in: str
    kind: str
    share: float | None
    obstacles: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class ObstacleGroup:
    """One kind of obstacle, everywhere it occurs.

    Attributes:
        title: The kind in words.
        remedy: What to do.
        nodes: Where, each node once.
        details: One sentence each, with what node it concerns.
    """

    title: str
    remedy: str
    nodes: tuple[str, ...]
    details: Listing[Obstacle]


@dataclass(frozen=True)
class QuantizationView:
    """Everything the page shows of a quantization."""

    mark: str
    types: str
    legend: tuple[Segment, ...]
    bars: tuple[ShareBar, ...]
    layers: Listing[LayerRow]
    has_obstacles: bool
    obstacles: Listing[ObstacleGroup]
    left_alone: tuple[RuleGroup, ...]
    clipping: ClippingPicture | None


def build_quantization_view(section: QuantizationReport) -> QuantizationView:
    """Return what the page shows; what a person must see comes first in every list."""
    audit, calibration = section.audit, section.calibration
    return QuantizationView(
        mark=_MARKS[audit.is_probably_faster],
        types=_name_types(audit.layers_by_type),
        legend=_divide([(layer.runs_in, 1.0) for layer in audit.layers]),
        bars=_list_bars(audit),
        layers=limit_entries(_list_layers(section), MOST_LAYERS),
        has_obstacles=bool(audit.obstacles),
        obstacles=limit_entries(group_obstacles(audit.obstacles), MOST_OBSTACLES),
        left_alone=group_by_rule(
            (name, decision.rule, decision.reason)
            for name, decision in section.decisions.items()
            if decision.quantized is None
        ),
        clipping=draw_clipping(calibration.tensors) if calibration else None,
    )


def group_obstacles(obstacles: Iterable[Obstacle]) -> list[ObstacleGroup]:
    """Return one group per kind, the one with most nodes first."""
    kinds: dict[str, list[Obstacle]] = {}
    for obstacle in obstacles:
        kinds.setdefault(obstacle.kind, []).append(obstacle)
    groups = [
        ObstacleGroup(
            name_obstacle(kind),
            found[0].remedy,
            tuple(dict.fromkeys(obstacle.node for obstacle in found)),
            limit_entries(found, MOST_PLACES),
        )
        for kind, found in kinds.items()
    ]
    return sorted(groups, key=lambda group: -len(group.nodes))


def name_obstacle(kind: str) -> str:
    """Return the kind in words; one of a later version is its own name."""
    return _TITLES.get(kind, kind)


def find_kind(runs_in: str) -> str:
    """Return the class of a type's colour."""
    return _KINDS.get(runs_in, "other")


def is_narrow(runs_in: str) -> bool:
    """Return whether a layer that runs in this type is a quantized one."""
    return find_kind(runs_in) in ("i8", "f8")


def _name_types(runs_in: Iterable[str]) -> str:
    """Return ``INT8 and FP8``; nothing where no layer is quantized."""
    return " and ".join(kind.upper() for kind in runs_in if is_narrow(kind))


def _list_bars(audit: QuantizationAudit) -> tuple[ShareBar, ...]:
    work = [(layer.runs_in, _measure(layer.flops)) for layer in audit.layers]
    weights = [(layer.runs_in, _measure(layer.weight_bytes)) for layer in audit.layers]
    bars = (
        ShareBar("Work (FLOPs)", audit.flops_share, _divide(work)),
        ShareBar("Weights (bytes)", audit.weight_bytes_share, _divide(weights)),
    )
    return tuple(bar for bar in bars if bar.segments)


def _measure(amount: float | None) -> float:
    """Return an amount; 0 for one that is not known, and for what can only be damage."""
    return amount if amount is not None and 0 <= amount < math.inf else 0.0


def _divide(amounts: Sequence[tuple[str, float]]) -> tuple[Segment, ...]:
    """Return the part of each type that has any, 8 bits first."""
    sums: dict[str, float] = {}
    for runs_in, amount in amounts:
        sums[runs_in] = sums.get(runs_in, 0.0) + amount
    counts = Counter(runs_in for runs_in, _ in amounts)
    total = sum(sums.values())
    order = [*_KINDS, *sums]
    return tuple(
        Segment(find_kind(runs_in), runs_in, counts[runs_in], amount / total)
        for runs_in, amount in sorted(sums.items(), key=lambda item: order.index(item[0]))
        if amount > 0
    )


def _list_layers(section: QuantizationReport) -> list[LayerRow]:
    layers = section.audit.layers
    total = sum(_measure(layer.flops) for layer in layers)

    def make_row(layer: LayerAudit) -> LayerRow:
        decision = section.decisions.get(layer.node)
        is_left = decision is not None and decision.quantized is None
        return LayerRow(
            layer.node,
            layer.op_type,
            layer.runs_in,
            find_kind(layer.runs_in),
            _measure(layer.flops) / total if total and layer.flops is not None else None,
            tuple(name_obstacle(kind) for kind in dict.fromkeys(layer.obstacles)),
            decision.reason if decision and is_left and not layer.obstacles else "",
        )

    first = sorted(layers, key=lambda layer: (not layer.obstacles, -_measure(layer.flops)))
    return [make_row(layer) for layer in first]
