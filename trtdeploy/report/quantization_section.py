"""The ``quantization`` section of ``report.json``: decisions, audit and calibration."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from trtdeploy.report.fields import Count, ReportModel, Sha256, Text

Share = Annotated[float, Field(ge=0, le=1)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""FLOPs or bytes: sizes of a hostile model multiply to more than 64 bits hold."""


class DecisionEntry(ReportModel):
    """What became of one layer; ``quantized`` is null for one that was left alone."""

    quantized: Text | None
    rule: Text
    reason: Text


class LayerEntry(ReportModel):
    """What a layer will run in; obstacles by kind. Null costs belong to unknown sizes."""

    node: Text
    op_type: Text
    runs_in: Text
    flops: Amount | None
    weight_bytes: Amount | None
    obstacles: tuple[Text, ...]


class ObstacleEntry(ReportModel):
    """What keeps a node out of 8 bits, or makes the graph slower or wrong there."""

    kind: Text
    node: Text
    detail: Text
    remedy: Text


class AuditEntry(ReportModel):
    """What ``QuantizationAudit.to_dict`` returns.

    Attributes:
        verdict: One plain sentence.
        is_probably_faster: Than FP16; null when nothing is quantized.
        flops_share: Part of the work that runs in 8 bits; null when no size is known.
        weight_bytes_share: Likewise for the bytes of weights.
        conversions: Q/DQ nodes that cost a pass of their own.
        unknown_costs: Layers that are in no share.
        layers_by_type: How many layers run in which type.
        layers: In graph order.
        obstacles: Those of the layers included.
    """

    verdict: Text
    is_probably_faster: bool | None
    flops_share: Share | None
    weight_bytes_share: Share | None
    conversions: Count
    unknown_costs: Count
    layers_by_type: dict[Text, Count]
    layers: tuple[LayerEntry, ...]
    obstacles: tuple[ObstacleEntry, ...]


class CalibrationDataEntry(ReportModel):
    """Where samples came from."""

    description: Text
    sha256: Sha256
    samples: Count


class TensorRangeEntry(ReportModel):
    """Where a tensor is clipped, its largest magnitude, and who chose; one-sided: never negative.

    Null is a figure that was not finite.
    """

    threshold: float | None
    amax: float | None
    method: Text
    one_sided: bool


class CalibrationEntry(ReportModel):
    """How the scales of activations were found.

    Attributes:
        method: For tensors that no pattern matches.
        by_tensor: Pattern and method of the others.
        percentile: Of the method of that name.
        samples: How many were counted.
        skipped: Samples that were left out, and why.
        is_synthetic: The samples were made up, so the scales prove nothing.
        data: Where samples came from.
        tensors: In graph order.
        notes: What a person should know.
    """

    method: Text
    by_tensor: tuple[tuple[Text, Text], ...]
    percentile: float
    samples: Count
    skipped: tuple[Text, ...]
    is_synthetic: bool
    data: tuple[CalibrationDataEntry, ...]
    tensors: dict[Text, TensorRangeEntry]
    notes: tuple[Text, ...]


class QuantizationSection(ReportModel):
    """Layers in 8 bits: what was decided, what will come of it, and where scales came from.

    Attributes:
        kind: The 8-bit types in words.
        decisions: By layer, in graph order.
        notes: What a person should know.
        audit: What an engine will make of the graph.
        calibration: Null for a model that brought its own Q/DQ pairs.
    """

    kind: Text
    decisions: dict[Text, DecisionEntry]
    notes: tuple[Text, ...]
    audit: AuditEntry
    calibration: CalibrationEntry | None = None

    @property
    def is_synthetic(self) -> bool:
        """True when scales come from samples that were made up."""
        return self.calibration is not None and self.calibration.is_synthetic

    @property
    def is_brought(self) -> bool:
        """True when the model came with the Q/DQ pairs that its layers read."""
        return self.calibration is None and self.audit.is_probably_faster is not None
