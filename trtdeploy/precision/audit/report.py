"""What an audit of a quantized graph says: layers, obstacles, shares, one plain sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class ObstacleKind(Enum):
    """What keeps a layer from its 8-bit kernel, or makes a quantized graph slower or wrong."""

    ONE_OPERAND = "one-operand"
    CAST_BETWEEN = "cast-between"
    ARITHMETIC_BETWEEN = "arithmetic-between"
    MIXED_TYPES = "mixed-types"
    NO_KERNEL = "no-kernel"
    PER_CHANNEL_ACTIVATION = "per-channel-activation"
    WRONG_AXIS = "wrong-axis"
    BLOCKED_SCALE = "blocked-scale"
    BAD_SCALE = "bad-scale"
    ZERO_POINT = "zero-point"
    INTEGER_BIAS = "integer-bias"
    BEFORE_ACTIVATION = "before-activation"
    BOTH_BRANCHES = "both-branches"
    CONCAT_SCALES = "concat-scales"
    ROUND_TRIP = "round-trip"

    def at(self, node: str, detail: str) -> Obstacle:
        """Return an obstacle of this kind."""
        return Obstacle(self.value, node, detail, self.remedy)

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return _REMEDIES[self]

    @property
    def title(self) -> str:
        """The kind as a phrase that follows a count of layers or nodes."""
        return _TITLES[self]


_REMEDIES = {
    ObstacleKind.ONE_OPERAND: "Quantize the other operand too, or take the pair away.",
    ObstacleKind.CAST_BETWEEN: "Let DequantizeLinear give the type the layer computes in (its "
    "scale has that type), without a Cast behind it.",
    ObstacleKind.ARITHMETIC_BETWEEN: "Put the Q/DQ pair right before the layer, behind the "
    "arithmetic.",
    ObstacleKind.MIXED_TYPES: "Quantize both operands to the same type, INT8 or FP8 E4M3.",
    ObstacleKind.NO_KERNEL: "Quantize both operands to INT8 or FP8 E4M3.",
    ObstacleKind.PER_CHANNEL_ACTIVATION: "Give the activation one scale.",
    ObstacleKind.WRONG_AXIS: "Make the scales along the axis of the output channels: 0 for Conv, "
    "1 for ConvTranspose, the columns of MatMul and Gemm; or use one scale.",
    ObstacleKind.BLOCKED_SCALE: "Use one scale per output channel; blocks are for weights alone.",
    ObstacleKind.BAD_SCALE: "Calibrate again; a scale must be positive and finite.",
    ObstacleKind.ZERO_POINT: "Calibrate again with symmetric INT8 (zero point 0).",
    ObstacleKind.INTEGER_BIAS: "trtdeploy build folds it to FP32, bit for bit.",
    ObstacleKind.BEFORE_ACTIVATION: "Move the pair behind the activation.",
    ObstacleKind.BOTH_BRANCHES: "Keep the pair of the skip branch; take that of the layer's "
    "result away, so that the Add is computed with the layer.",
    ObstacleKind.CONCAT_SCALES: "Give all inputs of the Concat one scale.",
    ObstacleKind.ROUND_TRIP: "Take the pair away: it only rounds.",
}

_TITLES = {
    ObstacleKind.ONE_OPERAND: "only one operand is quantized",
    ObstacleKind.CAST_BETWEEN: "a Cast stands between DequantizeLinear and the layer",
    ObstacleKind.ARITHMETIC_BETWEEN: "arithmetic stands between DequantizeLinear and the layer",
    ObstacleKind.MIXED_TYPES: "the operands have different quantized types",
    ObstacleKind.NO_KERNEL: "there is no kernel for the type",
    ObstacleKind.PER_CHANNEL_ACTIVATION: "the activation has a scale per channel",
    ObstacleKind.WRONG_AXIS: "the weight's scales run along the wrong axis",
    ObstacleKind.BLOCKED_SCALE: "the scales are blocked",
    ObstacleKind.BAD_SCALE: "a scale is not positive and finite",
    ObstacleKind.ZERO_POINT: "a zero point is not 0",
    ObstacleKind.INTEGER_BIAS: "the bias is int32",
    ObstacleKind.BEFORE_ACTIVATION: "a Q/DQ pair separates the layer from its activation",
    ObstacleKind.BOTH_BRANCHES: "both operands of a residual Add are quantized",
    ObstacleKind.CONCAT_SCALES: "a Concat joins different scales",
    ObstacleKind.ROUND_TRIP: "the value is quantized and read by nothing that gains from it",
}


@dataclass(frozen=True)
class Obstacle:
    """One thing that costs speed or accuracy.

    Attributes:
        kind: Value of an ``ObstacleKind``; a file of a later version may name another.
        node: The node it concerns: a layer, an Add, a Concat, or a Q/DQ node.
        detail: One sentence without a full stop, naming nodes and values.
        remedy: What to do about it.
    """

    kind: str
    node: str
    detail: str
    remedy: str


@dataclass(frozen=True)
class LayerAudit:
    """What one Conv, ConvTranspose, Gemm or MatMul will run in.

    Attributes:
        runs_in: ``int8``, ``fp8``, or the floating-point type: ``fp16``, ``bf16``, ``fp32``.
        touched: At least one operand comes from DequantizeLinear, however far away.
        flops: Work of one run, which may be more than 64 bits hold; None when sizes are not
            known.
        weight_bytes: Bytes of its constant in floating point; None when sizes are not known.
        obstacles: Kinds of what keeps it out of 8 bits, or disturbs it there.
    """

    node: str
    op_type: str
    runs_in: str
    touched: bool
    flops: float | None
    weight_bytes: float | None
    obstacles: tuple[str, ...]

    @property
    def is_quantized(self) -> bool:
        """True when it runs in 8 bits."""
        return self.runs_in in ("int8", "fp8")


@dataclass(frozen=True)
class QuantizationAudit:
    """What Q/DQ nodes of a graph will come to in an engine.

    Attributes:
        verdict: One plain sentence.
        is_probably_faster: Than the same model in FP16; None when nothing is quantized.
        flops_share: Part of the work of all layers that runs in 8 bits, 0 to 1; None when no
            size is known.
        weight_bytes_share: Likewise for the bytes of weights.
        conversions: Q/DQ nodes that cost a pass over a tensor of their own.
        unknown_costs: Layers whose sizes are not known; they are in no share.
        layers_by_type: How many layers run in each type, the most frequent first.
        layers: Every layer, in graph order.
        obstacles: Every obstacle, those of the layers included.
    """

    verdict: str
    is_probably_faster: bool | None
    flops_share: float | None
    weight_bytes_share: float | None
    conversions: int
    unknown_costs: int
    layers_by_type: Mapping[str, int]
    layers: tuple[LayerAudit, ...]
    obstacles: tuple[Obstacle, ...]

    @property
    def is_quantized(self) -> bool:
        """True when a layer runs in 8 bits, or was meant to."""
        return any(layer.touched for layer in self.layers)
