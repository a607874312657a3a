"""KeepOperatorRule: kinds of operators that lose their result in 16 bits, whatever the data."""

from __future__ import annotations

from collections.abc import Iterator

from trtdeploy.precision.context import RuleContext
from trtdeploy.precision.rules.rule import Kept

KEPT_OPERATORS: dict[str, str] = {
    **dict.fromkeys(
        ("ReduceSum", "ReduceSumSquare", "ReduceL1", "ReduceL2", "ReduceLogSum",
         "ReduceLogSumExp", "ReduceProd", "CumSum", "CumProd", "LpPool", "GlobalLpPool"),
        "it sums many values and the sum can overflow",
    ),
    **dict.fromkeys(
        ("LayerNormalization", "InstanceNormalization", "GroupNormalization",
         "RMSNormalization", "MeanVarianceNormalization", "LpNormalization", "LRN"),
        "it sums squares, which overflow and lose precision",
    ),
    **dict.fromkeys(
        ("LSTM", "GRU", "RNN"), "rounding of the state adds up over the time steps"
    ),
    **dict.fromkeys(
        ("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli",
         "Multinomial", "EyeLike", "Range", "HannWindow", "HammingWindow", "BlackmanWindow"),
        "it generates values and runtimes lack narrow forms of it",
    ),
    **dict.fromkeys(
        ("TopK", "NonMaxSuppression", "RoiAlign", "MaxRoiPool"),
        "it selects by comparing values that rounding would make equal",
    ),
    **dict.fromkeys(
        ("GridSample", "AffineGrid"),
        "it computes sampling coordinates, which need more than 11 bits",
    ),
    **dict.fromkeys(
        ("DFT", "STFT", "MelWeightMatrix", "Det"),
        "it is a long sum of products with cancellation",
    ),
    "DynamicQuantizeLinear": "it computes a scale that must fit its own values",
    "Constant": "its value is itself a result of the graph",
}  # fmt: skip
"""Operator to reason."""


class KeepOperatorRule:
    """Keep every node whose operator is in ``KEPT_OPERATORS``."""

    def find(self, context: RuleContext) -> Iterator[Kept]:
        """Yield nodes by operator."""
        for _, node in context.index.nodes():
            reason = KEPT_OPERATORS.get(node.op_type)
            if reason:
                yield node.name, f"{node.op_type}: {reason}"
