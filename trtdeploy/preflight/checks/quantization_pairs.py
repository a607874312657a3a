"""FindQuantizationPairsCheck: quantized values that never come back, and pre-quantized models."""

from __future__ import annotations

from collections.abc import Iterator

from trtdeploy.preflight.context import CheckContext
from trtdeploy.preflight.finding import (
    WHOLE_GRAPH,
    Affects,
    Finding,
    FindingKind,
    Severity,
)
from trtdeploy.preflight.prepared_model import CheckedNode

UNPAIRED_QUANTIZE = FindingKind("unpaired-quantize", Severity.HAZARD, Affects.ENGINE)
ALREADY_QUANTIZED = FindingKind("already-quantized", Severity.HAZARD, Affects.ENGINE)

_PASSES_ON = frozenset(
    {"Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze", "Concat", "Slice", "Gather",
     "Identity", "Split", "Pad", "MaxPool", "Resize"}
)  # fmt: skip
"""Operators that move quantized numbers without computing with them."""


class FindQuantizationPairsCheck:
    """Find QuantizeLinear nodes without DequantizeLinear, and Q/DQ under a quantizing recipe."""

    def find(self, context: CheckContext) -> Iterator[Finding]:
        """Yield one finding per unpaired node, and one for the model."""
        if not context.target.uses_tensorrt:
            return
        quantizers = [c for c in context.standard_nodes() if c.node.op_type == "QuantizeLinear"]
        for checked in quantizers:
            reader = _find_foreign_reader(checked)
            if reader:
                yield UNPAIRED_QUANTIZE.at(
                    checked.place,
                    f"its result {checked.node.output[0]!r} is read by {reader}, not by a "
                    f"DequantizeLinear; {context.target.engine_title} runs integer kernels only "
                    "between pairs of the two",
                    "Export in QDQ format: every QuantizeLinear followed by a DequantizeLinear.",
                )
        recipe = context.target.recipe
        if quantizers and recipe.quantized is not None:
            yield ALREADY_QUANTIZED.at(
                WHOLE_GRAPH,
                f"the model is pre-quantized (QuantizeLinear nodes: {len(quantizers)}); they are "
                f"kept as they are, and recipe {recipe.name!r} quantizes nothing beside them",
                "Nothing to do if that is meant; give the FP32 model to let trtdeploy calibrate "
                "and place the pairs.",
            )


def _find_foreign_reader(checked: CheckedNode) -> str:
    """Return the operator that reads the quantized value; empty when all is well."""
    pending, seen = [checked.node.output[0]], set()
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        for use in checked.scope.uses_of(name):
            if use.node.op_type in _PASSES_ON:
                pending.extend(output for output in use.node.output if output)
            elif use.node.op_type != "DequantizeLinear":
                return use.node.op_type
    return ""
