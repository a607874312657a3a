"""What came of an export: the file, and why it may be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from trtdeploy.core.tensors import SizeRule, TensorSpec

ProofStatus = Literal["proven", "skipped"]


@dataclass(frozen=True)
class ProofPoint:
    """One set of sizes at which the file was compared with its source.

    Attributes:
        max_error: Largest error over all outputs, as ``comparison`` defines it; always finite.
        worst_output: The output of that difference; empty when there is none.
    """

    sizes: dict[str, int]
    max_error: float
    worst_output: str = ""


@dataclass(frozen=True)
class ExportProof:
    """How the file was compared with what it was made from.

    Attributes:
        status: ``proven``, or ``skipped`` with ``reason``. What differs is an error instead.
        reference: What computed the expected outputs, e.g. ``PyTorch 2.14.1``.
        points: Every set of sizes that was tried.
        batch_independent: A sample's outputs do not change with its neighbours; None when the
            batch is fixed.
        reason: Why the proof was skipped.
    """

    status: ProofStatus
    reference: str = ""
    points: tuple[ProofPoint, ...] = ()
    batch_independent: bool | None = None
    reason: str = ""

    @property
    def max_error(self) -> float:
        """Largest relative error over all points."""
        return max((point.max_error for point in self.points), default=0.0)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


@dataclass(frozen=True)
class ExportResult:
    """A written ONNX file and what is known about it.

    Attributes:
        source: What it was made from, as typed.
        exporter: What wrote the graph, e.g. ``dynamo, PyTorch 2.14.1``, or ``cleaned``.
        opset: Version of the default operator set.
        opset_reason: Why this one.
        inputs: What the file takes.
        outputs: What the file returns.
        size_rules: What sizes its symbols accept; recorded in the file.
        pins: Node-name patterns that stay FP32 in every recipe; recorded in the file.
        proof: How it was compared with its source.
        notes: What the user should know: assumptions, fallbacks.
        changes: What was changed in the graph, one sentence each.
    """

    path: Path
    source: str
    exporter: str
    opset: int
    opset_reason: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    proof: ExportProof
    size_rules: tuple[SizeRule, ...] = ()
    pins: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "path": str(self.path),
            "source": self.source,
            "exporter": self.exporter,
            "opset": self.opset,
            "opset_reason": self.opset_reason,
            "inputs": _describe(self.inputs),
            "outputs": _describe(self.outputs),
            "size_rules": {rule.symbol: rule.to_dict() for rule in self.size_rules},
            "keep_fp32": list(self.pins),
            "proof": self.proof.to_dict(),
            "notes": list(self.notes),
            "changes": list(self.changes),
        }


def _describe(specs: Sequence[TensorSpec]) -> list[dict[str, Any]]:
    return [
        {
            "name": spec.name,
            "dtype": spec.dtype.label,
            "shape": None if spec.shape is None else list(spec.shape),
        }
        for spec in specs
    ]
