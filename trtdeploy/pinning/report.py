"""What a search for pins ends with: plain values for console, JSON and YAML."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trtdeploy.pinning.candidate import Candidate, PinningOutcome, Score, list_nodes
from trtdeploy.pinning.target import Target
from trtdeploy.precision.pins import FP32, parse_pin


@dataclass(frozen=True)
class PinningReport:
    """Answer of ``trtdeploy pin``.

    Attributes:
        target: What was to be reached.
        precision: What the nodes are pinned to: ``fp32`` or ``fp16``.
        reasons: Why a node loses much, by name, where that is known.
        quantized_share: Part of the arithmetic in 8 bits without and with the pins; None where
            sizes are not known, or nothing is quantized.
        samples: What the outputs were compared on.
        notes: What a person should know, one sentence each.
    """

    model: str
    deploy_profile: str
    recipe: str
    target: Target | str
    outcome: PinningOutcome
    precision: str
    reasons: Mapping[str, str]
    quantized_share: tuple[float | None, float | None]
    samples: str
    notes: tuple[str, ...]

    @property
    def reached(self) -> bool:
        """True when the target is met, with or without pins."""
        return self.outcome.reached

    @property
    def pinned_nodes(self) -> tuple[str, ...]:
        """Names of all nodes to pin."""
        return tuple(list_nodes(self.outcome.pinned))

    @property
    def pins(self) -> tuple[str, ...]:
        """Return what ``--pin`` takes."""
        return tuple(_format_pin(node, self.precision) for node in self.pinned_nodes)

    def measure_share(self, candidate: Candidate) -> float | None:
        """Return the part of all candidates' arithmetic that one does; None when not known."""
        total = sum(each.flops or 0 for each in self.outcome.candidates)
        return candidate.flops / total if candidate.flops is not None and total else None

    def describe_score(self, score: Score) -> str:
        """Return the figure that the target is about, and the SQNR of the worst output."""
        if isinstance(self.target, Target):
            text = self.target.format_value(score.value)
        else:
            text = "-" if score.value is None else f"metric {score.value:.4g}"
        if math.isinf(score.worst_noise):
            return "NaN, infinity or another shape in an output"
        decibels = "no error" if score.sqnr_db is None else f"{score.sqnr_db:.1f} dB"
        return text if text == decibels else f"{text} ({decibels})"

    def describe_shares(self) -> str:
        """Return how much of the arithmetic is quantized; empty when nothing is, or not known."""
        plain, hybrid = self.quantized_share
        if plain is None or hybrid is None:
            return ""
        if not self.pins:
            return f"{plain:.1%} of the FLOPs"
        return f"{hybrid:.1%} of the FLOPs; without the pins {plain:.1%}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        found = self.outcome
        return {
            "model": self.model,
            "profile": self.deploy_profile,
            "recipe": self.recipe,
            "target": str(self.target),
            "reached": self.reached,
            "pins": list(self.pins),
            "precision_nodes": dict.fromkeys(self.pinned_nodes, self.precision),
            "quantized_flops_share": {
                "plain": self.quantized_share[0],
                "hybrid": self.quantized_share[1],
            },
            "plain": _describe_score(found.plain),
            "hybrid": _describe_score(found.hybrid),
            "all_pinned": None if found.all_pinned is None else _describe_score(found.all_pinned),
            "candidates": [self._describe(candidate) for candidate in found.candidates],
            "runs": found.runs,
            "samples": self.samples,
            "notes": [*self.notes, *found.notes],
        }

    def _describe(self, candidate: Candidate) -> dict[str, Any]:
        alone = self.outcome.alone.get(candidate.name)
        return {
            "node": candidate.name,
            "op_type": candidate.op_type,
            "nodes": list(candidate.nodes),
            "flops": candidate.flops,
            "alone": None if alone is None else _describe_score(alone),
            "pinned": candidate in self.outcome.pinned,
            "reason": self.reasons.get(candidate.name, ""),
        }


def render_deploy_profile(report: PinningReport, folder: Path) -> str:
    """Return the text of a deploy profile that extends the report's own with the pins.

    Args:
        report: What was found.
        folder: Where the text will be stored: what relative paths in it refer to.
    """
    parent = report.deploy_profile
    path = Path(parent)
    if path.is_file():
        parent = f"./{os.path.relpath(path.resolve(), folder.resolve())}"
    lines = [
        f"# trtdeploy pin {report.model}: {report.target}, reached with {len(report.pins)} pins",
        f"extends: {json.dumps(parent)}",
        *render_precision_section(report),
    ]
    return "\n".join(lines) + "\n"


def render_precision_section(report: PinningReport) -> list[str]:
    """Return the lines of ``precision:``; names are quoted, for they may hold anything."""
    nodes = [
        f"    {json.dumps(node, ensure_ascii=False)}: {report.precision}"
        for node in report.pinned_nodes
    ]
    return ["precision:", "  nodes:", *nodes] if nodes else []


def _format_pin(node: str, precision: str) -> str:
    """Return the shortest pin text that means this node and this precision."""
    if precision == FP32 and parse_pin(node).pattern == node:
        return node
    return f"{precision}:{node}"


def _describe_score(score: Score) -> dict[str, Any]:
    return {
        "sqnr_db": score.sqnr_db,
        "value": score.value,
        "error_over_target": score.excess if score.excess != float("inf") else None,
    }
