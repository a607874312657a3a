"""KeepQuantizationScaleRule: Q/DQ nodes whose scale the narrow type does not have."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import NodeProto

from trtdeploy.graph.constant_values import read_constant
from trtdeploy.graph.index import Scope
from trtdeploy.graph.weights import narrow_values
from trtdeploy.precision.context import RuleContext
from trtdeploy.precision.operators import Q_DQ_OPERATORS
from trtdeploy.precision.rules.rule import Kept

TOLERANCE = 2.0**-8
"""Relative error of a scale that changes no value by more than INT8 does itself: half a step is
1/254 of the range. FP16 holds scales down to 8e-6 so well, BF16 every scale."""
_SCALE_SLOT = 1


class KeepQuantizationScaleRule:
    """Keep QuantizeLinear and DequantizeLinear where rounding the scale would change the model.

    Otherwise they are typed like the layers around them: a Cast between DequantizeLinear and its
    layer would keep TensorRT from fusing the two.
    """

    def find(self, context: RuleContext) -> Iterator[Kept]:
        """Yield Q/DQ nodes with such a scale."""
        for scope, node in context.index.nodes():
            if node.op_type in Q_DQ_OPERATORS:
                reason = _judge(context, scope, node)
                if reason:
                    yield node.name, reason


def _judge(context: RuleContext, scope: Scope, node: NodeProto) -> str:
    name = node.input[_SCALE_SLOT]
    values = read_constant(context.index.model, scope, name)
    if values is None:
        return f"its scale {name!r} is computed, and {context.low.label} may not hold it"
    scales = values.astype(np.float64).ravel()
    rounded = narrow_values(values.astype(np.float32), context.low).astype(np.float64).ravel()
    off = np.abs(rounded - scales) > TOLERANCE * np.abs(scales)
    if not off.any():
        return ""
    worst = scales[off][np.argmin(np.abs(scales[off]))]
    return f"its scale {name!r} holds {worst:.4g}, which {context.low.label} has only roughly"
