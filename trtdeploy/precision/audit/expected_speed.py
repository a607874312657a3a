"""From layers and obstacles to one sentence: is this quantized graph worth it?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from trtdeploy.precision.audit.report import LayerAudit, Obstacle, ObstacleKind

SMALLEST_SHARE = 0.5
"""Part of the work that has to run in 8 bits. Rule of thumb: 8-bit kernels do at most twice the
work of FP16 per second (NVIDIA data sheets, dense INT8 and FP8 against FP16), so by Amdahl's law
half of the work gives at most 1.33 times the speed, which conversions use up."""
LARGEST_RELATIVE_TIME = 0.75
"""Time of the work against the same in FP16, when each type runs at its rate: what half of the
work in 8 bits and the rest in FP16 takes."""
_RELATIVE_TIME = {"int8": 0.5, "fp8": 0.5, "fp16": 1.0, "bf16": 1.0, "fp32": 2.0}
"""Time per FLOP against FP16 (NVIDIA data sheets, dense rates of tensor cores; FP32 as TF32)."""
MOST_CONVERSIONS_PER_LAYER = 1.0
"""Conversions per layer in 8 bits. Rule of thumb: each is a pass over a tensor that the FP16
engine does not make, and a layer saves about one such pass."""
MOST_BROKEN_SHARE = 0.5
"""Part of the 8-bit layers whose fusion may be broken. Rule of thumb: a broken fusion writes and
reads the result once more, about what the layer saves."""

_BREAKS_FUSION = (ObstacleKind.BEFORE_ACTIVATION.value, ObstacleKind.BOTH_BRANCHES.value)


@dataclass(frozen=True)
class Shares:
    """How much of a model runs in 8 bits, 0 to 1; None when no size is known."""

    flops: float | None
    weight_bytes: float | None
    layers: float


def measure_shares(layers: Sequence[LayerAudit]) -> Shares:
    """Return the shares of work, weight bytes and layers that run in 8 bits."""
    known = [layer for layer in layers if layer.flops is not None]
    narrow = [layer for layer in known if layer.is_quantized]
    return Shares(
        flops=_divide(
            sum(layer.flops or 0 for layer in narrow), sum(layer.flops or 0 for layer in known)
        ),
        weight_bytes=_divide(
            sum(layer.weight_bytes or 0 for layer in narrow),
            sum(layer.weight_bytes or 0 for layer in known),
        ),
        layers=_divide(sum(layer.is_quantized for layer in layers), len(layers)) or 0.0,
    )


def judge_audit(
    layers: Sequence[LayerAudit],
    obstacles: Sequence[Obstacle],
    conversions: int,
    shares: Shares,
) -> tuple[str, bool | None]:
    """Return what to expect of the engine in a sentence, and whether it is probably faster.

    That is None when nothing is quantized.
    """
    quantized = [layer for layer in layers if layer.is_quantized]
    if not any(layer.touched for layer in layers):
        return "No layer is quantized.", None
    reasons = _find_reasons(layers, obstacles, conversions, shares)
    if reasons:
        text = "; ".join(reasons)
        return f"This will probably not be faster than FP16, because {text}.", False
    types = " and ".join(sorted({layer.runs_in.upper() for layer in quantized}))
    return f"Most of the work ({_describe_share(shares)}) runs in {types}.", True


def _find_reasons(
    layers: Sequence[LayerAudit],
    obstacles: Sequence[Obstacle],
    conversions: int,
    shares: Shares,
) -> list[str]:
    quantized = [layer for layer in layers if layer.is_quantized]
    reasons = []
    share = shares.layers if shares.flops is None else shares.flops
    if share < SMALLEST_SHARE:
        part = f"only {_describe_share(shares)} run in 8 bits"
        start = part if quantized else "no layer runs in 8 bits"
        reasons.append(start + _describe_main_obstacle(layers))
    elif _measure_relative_time(layers) > LARGEST_RELATIVE_TIME:
        wide = [layer for layer in layers if layer.runs_in == "fp32"]
        reasons.append(f"{len(wide)} layers run in FP32, which takes twice the time of FP16")
    if quantized and conversions > MOST_CONVERSIONS_PER_LAYER * len(quantized):
        reasons.append(
            f"{conversions} Q/DQ nodes convert a tensor in a pass of their own, for "
            f"{len(quantized)} layers in 8 bits"
        )
    broken = {o.node for o in obstacles if o.kind in _BREAKS_FUSION}
    if quantized and len(broken) > MOST_BROKEN_SHARE * len(quantized):
        kinds = Counter(o.kind for o in obstacles if o.kind in _BREAKS_FUSION)
        reasons.append(
            f"fusions are broken in {len(broken)} place{'s' if len(broken) > 1 else ''}: "
            f"{ObstacleKind(kinds.most_common(1)[0][0]).title}"
        )
    return reasons


def _measure_relative_time(layers: Sequence[LayerAudit]) -> float:
    """Return the time of all work against FP16; layers of unknown size count alike."""
    is_known = any(layer.flops for layer in layers)
    work = [(layer.flops or 0) if is_known else 1 for layer in layers]
    times = [_RELATIVE_TIME.get(layer.runs_in, 1.0) for layer in layers]
    spent = sum(amount * time for amount, time in zip(work, times, strict=True))
    return spent / (sum(work) or 1)


def _describe_main_obstacle(layers: Sequence[LayerAudit]) -> str:
    """Return the obstacle that keeps most work out of 8 bits, with an example."""
    work: dict[str, float] = {}
    nodes: dict[str, list[str]] = {}
    for layer in layers:
        for kind in dict.fromkeys(layer.obstacles):
            work[kind] = work.get(kind, 0) + (layer.flops or 1)
            nodes.setdefault(kind, []).append(layer.node)
    if not work:
        return ""
    kind = max(work, key=work.__getitem__)
    count = len(nodes[kind])
    rest = f" and {count - 1} more" if count > 1 else ""
    return f": {ObstacleKind(kind).title} ({nodes[kind][0]!r}{rest})"


def _describe_share(shares: Shares) -> str:
    if shares.flops is None:
        return f"{format_share(shares.layers)} of the layers"
    return f"{format_share(shares.flops)} of FLOPs"


def format_share(share: float) -> str:
    """Return a share in percent that never rounds up to all, nor down to nothing."""
    percent = round(100 * share)
    if percent == 100 and share < 1:  # noqa: PLR2004 - percent
        return "over 99 %"
    if percent == 0 and share > 0:
        return "under 1 %"
    return f"{percent} %"


def _divide(part: float, whole: float) -> float | None:
    return part / whole if whole else None
