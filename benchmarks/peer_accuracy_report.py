"""What ``quantization_accuracy.py`` prints: one table, and in how many cases trtdeploy is ahead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from benchmarks.accuracy_models import AccuracyModel
from benchmarks.tables import format_versions, render_facts, render_table

OURS = "trtdeploy"
_HEADERS = (
    "model", "method", "tool", "SQNR dB", "task", "INT8 layers", "INT8 FLOPs", "TensorRT-RTX",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One quantized file.

    Attributes:
        model: Its name.
        method: Calibration method.
        tool: Who made it.
        sqnr_db: Of the final output; of several, the worst. None when there is no file.
        task: Figures of the task; 1 is perfect.
        quantized_layers: Of Conv, ConvTranspose, Gemm and MatMul, those that run in INT8.
        layers: All of them.
        flops_share: Part of the arithmetic that runs in INT8; None when not known.
        engine: What TensorRT-RTX says of the file; empty when it was not asked.
        failure: Why there is no file.
    """

    model: str
    method: str
    tool: str
    sqnr_db: float | None = None
    task: Mapping[str, float] = field(default_factory=dict)
    quantized_layers: int = 0
    layers: int = 0
    flops_share: float | None = None
    engine: str = ""
    failure: str = ""

    @property
    def summary(self) -> str:
        """One line of progress."""
        return f"failed: {self.failure}" if self.sqnr_db is None else f"{self.sqnr_db:.2f} dB"

    def fail(self, reason: str) -> Row:
        """Return the row of a tool that made no usable file."""
        return replace(self, failure=reason)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Comparison:
    """trtdeploy and the best peer of one model and method.

    Attributes:
        model: Its name.
        method: Calibration method.
        ours_db: SQNR of trtdeploy.
        best: The row of the best peer.
    """

    model: str
    method: str
    ours_db: float
    best: Row

    @property
    def lead_db(self) -> float:
        """How far trtdeploy is ahead; negative where it is behind."""
        return self.ours_db - (self.best.sqnr_db or 0.0)


def list_comparisons(rows: Sequence[Row]) -> Iterator[Comparison]:
    """Yield one comparison per model and method that a peer has too."""
    for row in rows:
        peers = [
            other
            for other in rows
            if (other.model, other.method) == (row.model, row.method)
            and not other.tool.startswith(OURS)
            and other.sqnr_db is not None
        ]
        if row.tool == OURS and peers:
            best = max(peers, key=lambda peer: peer.sqnr_db or 0.0)
            ours = float("-inf") if row.sqnr_db is None else row.sqnr_db
            yield Comparison(row.model, row.method, ours, best)


def is_ahead(rows: Sequence[Row]) -> bool:
    """True when there are comparisons, and trtdeploy has at least the best peer's SQNR in all."""
    leads = [comparison.lead_db for comparison in list_comparisons(rows)]
    return bool(leads) and min(leads) >= 0


def render_report(
    report: Mapping[str, Any], rows: Sequence[Row], models: Sequence[AccuracyModel]
) -> str:
    """Return Markdown: where the figures come from, the table, and who is ahead."""
    samples = {m.name: f"{m.calibrating} and {m.evaluating}" for m in models}
    facts = {
        **report["machine"],
        **{tool: format_versions(found) for tool, found in report["versions"].items()},
        "samples to calibrate with and to evaluate on": format_versions(samples),
    }
    compared = list(list_comparisons(rows))
    behind = [
        f"* {c.model}, {c.method}: trtdeploy is {-c.lead_db:.1f} dB behind {c.best.tool}"
        for c in compared
        if c.lead_db < 0
    ]
    ahead = (
        f"trtdeploy has the best SQNR in {len(compared) - len(behind)} of {len(compared)} cases."
    )
    failures = [f"* {r.model}, {r.method}, {r.tool}: {r.failure}" for r in rows if r.failure]
    parts = (
        f"`{report['command']}`",
        render_facts(facts),
        render_table(_HEADERS, list(_make_cells(rows))),
        ahead if compared else "",
        "\n".join(behind),
        "\n".join(failures),
    )
    return "\n\n".join(part for part in parts if part)


def _make_cells(rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    best = {
        (c.model, c.method): max(c.ours_db, c.best.sqnr_db or 0.0) for c in list_comparisons(rows)
    }
    last_model = last_method = ""
    for row in rows:
        is_new_model = row.model != last_model
        is_new = is_new_model or row.method != last_method
        last_model, last_method = row.model, row.method
        yield (
            row.model if is_new_model else "",
            row.method if is_new else "",
            row.tool,
            _format_sqnr(row, best.get((row.model, row.method))),
            ", ".join(f"{name} {value:.4f}" for name, value in row.task.items()),
            f"{row.quantized_layers} of {row.layers}" if row.layers else "-",
            "-" if row.flops_share is None else f"{row.flops_share:.0%}",
            row.engine or "-",
        )


def _format_sqnr(row: Row, best: float | None) -> str:
    if row.sqnr_db is None:
        return "failed"
    text = f"{row.sqnr_db:.1f}"
    return f"**{text}**" if row.sqnr_db == best else text
