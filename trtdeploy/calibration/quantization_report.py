"""What reports say of quantization: decisions, what will come of them, where scales came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trtdeploy.calibration.summary import Calibration, CalibrationSummary
from trtdeploy.core.ranges import OptimizationProfile
from trtdeploy.precision.audit.auditing import audit_quantization
from trtdeploy.precision.audit.report import QuantizationAudit
from trtdeploy.precision.quantization.plan import LayerDecision
from trtdeploy.precision.typed_model import TypedModel


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


def describe_quantization(
    typed: TypedModel, sizes: OptimizationProfile, calibration: Calibration | None
) -> QuantizationReport | None:
    """Return what a report says about quantization; None when nothing is quantized.

    Args:
        typed: What the recipe made of the model.
        sizes: The usual ones decide the shares of work.
        calibration: Of this build; None for a pre-quantized model.
    """
    plan = typed.quantization
    if plan is None and not typed.plan.quantized:
        return None
    layers = plan.layers if plan is not None else {}
    kinds = {decision.quantized for decision in layers.values() if decision.quantized is not None}
    return QuantizationReport(
        kind=" and ".join(sorted(kinds)) or "none",
        decisions=layers,
        notes=plan.notes if plan is not None else (),
        audit=audit_quantization(typed.model, sizes.opt_shapes),
        calibration=None if calibration is None else calibration.summarize(),
    )
