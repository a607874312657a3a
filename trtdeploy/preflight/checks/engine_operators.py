"""FindEngineOperatorsCheck: standard operators that the engine or the baseline does not have."""

from __future__ import annotations

from collections.abc import Iterator

from trtdeploy.preflight.context import CheckContext
from trtdeploy.preflight.finding import Affects, Finding, FindingKind, Place, Severity
from trtdeploy.preflight.operator_table import OperatorStatus

UNSUPPORTED_OPERATOR = FindingKind("unsupported-operator", Severity.BLOCKER, Affects.ENGINE)
QUANTIZED_OPERATOR = FindingKind("quantized-operator", Severity.BLOCKER, Affects.ENGINE)
MISSING_PLUGIN = FindingKind("missing-plugin", Severity.BLOCKER, Affects.ENGINE)
UNLISTED_OPERATOR = FindingKind("unlisted-operator", Severity.HAZARD, Affects.ENGINE)

QUANTIZED_OPERATORS = frozenset(
    {"QLinearConv", "QLinearMatMul", "ConvInteger", "MatMulInteger", "DynamicQuantizeLinear"}
)
"""Operators of ONNX Runtime's QOperator format."""

_REMEDIES = {
    "Compress": "Use Where, or select by index with Gather, so that shapes stay known.",
    "Unique": "Move it out of the model, into the code behind the engine.",
    "Multinomial": "Return the probabilities and draw the samples outside the model.",
    "Bernoulli": "Return the probabilities and draw the samples outside the model.",
    "AffineGrid": "Precompute the grid, or export with a lower opset that decomposes it.",
    "NonZero": "Use Where with a mask instead of indices, so that shapes stay known.",
    "RoiAlign": "Use a TensorRT with plugins, or end the model before the region of interest step.",
}


class FindEngineOperatorsCheck:
    """Ask the installed parser, or else the shipped table, about every standard operator."""

    def find(self, context: CheckContext) -> Iterator[Finding]:
        """Yield one finding per node."""
        for checked in context.standard_nodes():
            place = checked.place
            if place.op_type in context.baseline.unsupported:
                yield UNSUPPORTED_OPERATOR.at(
                    place,
                    f"{context.baseline.title} has no {place.op_type} for the CPU",
                    "Move it out of the model.",
                    affects=Affects.BASELINE,
                )
            if context.target.uses_tensorrt:
                yield from _ask_engine(context, place)


def _ask_engine(context: CheckContext, place: Place) -> Iterator[Finding]:
    status = context.engine_status_of(place.op_type)
    engine = context.target.engine_title
    remedy = _REMEDIES.get(
        place.op_type,
        "Replace it by operators the engine has, cut it off the model, or supply a TensorRT "
        f"plugin named {place.op_type!r}.",
    )
    if status is OperatorStatus.UNSUPPORTED and place.op_type in QUANTIZED_OPERATORS:
        yield QUANTIZED_OPERATOR.at(
            place,
            f"{place.op_type} belongs to the QOperator format, which {engine} cannot import",
            "Quantize again in the QDQ format (QuantizeLinear and DequantizeLinear pairs, "
            "symmetric int8), or start from the FP32 model and let trtdeploy quantize it.",
        )
    elif status is OperatorStatus.UNSUPPORTED:
        yield UNSUPPORTED_OPERATOR.at(place, f"{engine} has no {place.op_type}", remedy)
    elif status is OperatorStatus.NEEDS_PLUGIN:
        yield MISSING_PLUGIN.at(
            place,
            f"{engine} imports {place.op_type} through a plugin that it does not ship",
            remedy,
        )
    elif status is OperatorStatus.UNLISTED:
        yield UNLISTED_OPERATOR.at(
            place,
            f"no table that was seen lists {place.op_type} for {engine}",
            "Check on a machine with that TensorRT installed; its parser knows.",
        )
