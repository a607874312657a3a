"""FindQuantizedOperandsCheck: layers whose operands are quantized to different types."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import NodeProto

from trtdeploy.core.dtypes import DType
from trtdeploy.graph.attributes import integer_of
from trtdeploy.graph.layer_costs import is_layer
from trtdeploy.precision.audit.operands import Dequantizer, trace_operand
from trtdeploy.preflight.context import CheckContext
from trtdeploy.preflight.finding import Affects, Finding, FindingKind, Severity

MIXED_QUANTIZATION = FindingKind("mixed-quantization", Severity.BLOCKER, Affects.ENGINE)


class FindQuantizedOperandsCheck:
    """Find Conv, ConvTranspose, Gemm and MatMul with, for one, int8 data and int4 weights.

    The parser accepts them and the builder fails ("Input and filter have to be the same type",
    TensorRT-RTX 1.7.1), also through a Transpose or a scaling in between, but not through a Cast.
    """

    def find(self, context: CheckContext) -> Iterator[Finding]:
        """Yield one finding per layer."""
        if not context.target.uses_tensorrt:
            return
        for checked in context.standard_nodes():
            if not is_layer(checked.node):
                continue
            operands = [
                trace_operand(context.prepared.index, checked.scope, name)
                for name in checked.node.input[:2]
            ]
            sources = [o.dequantizer for o in operands if o.dequantizer and o.cast is None]
            if len(sources) < len(operands) or _is_built(checked.node, sources):
                continue
            first, second = (
                f"{source.stored.label} from {context.place_of(source.node).node!r}"
                for source in sources
            )
            yield MIXED_QUANTIZATION.at(
                checked.place,
                f"one operand is {first}, the other {second}; "
                f"{context.target.engine_title} has no kernel for the two",
                "Quantize both operands to int8 or both to fp8, or the weight alone.",
            )


def _is_built(node: NodeProto, sources: list[Dequantizer]) -> bool:
    """True when TensorRT-RTX 1.7.1 builds the layer with these operands (measured, all pairs)."""
    data, weight = (source.stored for source in sources)
    if DType.UINT8 in (data, weight):
        return True  # another check says what is wrong with uint8
    if any(source.is_blocked for source in sources):
        return True  # dequantized in a kernel of its own
    if node.op_type == "ConvTranspose":
        has_groups = integer_of(node, "group", 1) > 1
        return has_groups or data is DType.INT8 or weight is not DType.INT4
    if node.op_type == "Conv" and weight is DType.INT4:
        return False
    return data is weight
