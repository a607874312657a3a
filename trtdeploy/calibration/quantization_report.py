"""What reports say of quantization: decisions, what will come of them, where scales came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trtdeploy.calibration.summary import CalibrationSummary
from trtdeploy.precision.audit.report import QuantizationAudit
from trtdeploy.precision.quantization.plan import LayerDecision


@dataclass(frozen=True)
class QuantizationReport:
    """Layers in 8 bits.

    Attributes:
        kind: The 8-bit types in words.
        decisions: By layer, in graph order.
        notes: What a person should know.
        audit: What an engine will make of the graph.
        calibration: None for a pre-quantized model.
    """

    kind: str
    decisions: Mapping[str, LayerDecision]
    notes: tuple[str, ...]
    audit: QuantizationAudit
    calibration: CalibrationSummary | None = None

    @property
    def is_synthetic(self) -> bool:
        """True when scales come from samples that were made up."""
        return self.calibration is not None and self.calibration.is_synthetic

    @property
    def is_prequantized(self) -> bool:
        """True when the model came with the Q/DQ pairs that its layers read."""
        return self.calibration is None and self.audit.is_probably_faster is not None

    @property
    def amax(self) -> dict[str, float] | None:
        """Largest magnitude kept, by value name; None without a calibration."""
        if self.calibration is None:
            return None
        found = self.calibration.tensors.items()
        return {name: each.amax for name, each in found if each.amax is not None}
