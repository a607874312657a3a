"""KeepEngineLimitRule: operators that ONNX allows in the narrow type and TensorRT does not."""

from __future__ import annotations

from collections.abc import Iterator

from trtdeploy.core.dtypes import DType
from trtdeploy.precision.context import RuleContext
from trtdeploy.precision.rules.rule import Kept

ENGINE_LIMITS: dict[DType, dict[str, str]] = {
    DType.BFLOAT16: {
        "ConvTranspose": "the TensorRT-RTX 1.7 compiler cannot infer its type in bfloat16",
        "HardSwish": "the TensorRT-RTX 1.7 parser takes float32 and float16 only",
        "Mish": "the TensorRT-RTX 1.7 parser takes float32 and float16 only",
    },
}
"""Found by compiling each operator alone; ``tests/precision`` repeats it on the real compiler."""


class KeepEngineLimitRule:
    """Keep operators that no TensorRT at hand builds in the narrow type."""

    def find(self, context: RuleContext) -> Iterator[Kept]:
        """Yield nodes by operator and narrow type."""
        limits = ENGINE_LIMITS.get(context.low, {})
        for _, node in context.index.nodes():
            if node.op_type in limits:
                yield node.name, f"{node.op_type}: {limits[node.op_type]}"
