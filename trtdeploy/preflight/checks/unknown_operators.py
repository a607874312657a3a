"""FindUnknownOperatorsCheck: operators that ONNX itself does not define."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import defs

from trtdeploy.graph.model import ONNX_DOMAINS
from trtdeploy.graph.passes.adopt_contrib_quantization import is_contrib_quantization
from trtdeploy.preflight.context import CheckContext
from trtdeploy.preflight.finding import Affects, Finding, FindingKind, Place, Severity
from trtdeploy.preflight.operator_table import OperatorStatus
from trtdeploy.preflight.prepared_model import INVALID_DOMAIN

UNKNOWN_OPERATOR = FindingKind("unknown-operator", Severity.BLOCKER, Affects.BOTH)
CONTRIB_OPERATOR = FindingKind("contrib-operator", Severity.BLOCKER, Affects.ENGINE)
PLUGIN_OPERATOR = FindingKind("plugin-operator", Severity.BLOCKER, Affects.BASELINE)

_EXPORT_AGAIN = "Export the model again without that runtime's optimisations (plain ONNX operators)"


class FindUnknownOperatorsCheck:
    """Find operators outside the operator set that the file names.

    Three kinds: operators that only ONNX Runtime has (``com.microsoft.FastGelu``), operators that
    only a TensorRT plugin provides (``EfficientNMS_TRT``), and operators nobody knows.
    """

    def find(self, context: CheckContext) -> Iterator[Finding]:
        """Yield one finding per node."""
        functions = {(f.domain, f.name) for f in context.model.proto.functions}
        for checked in context.prepared.nodes:
            place = checked.place
            if checked.is_standard or (place.domain, place.op_type) in functions:
                continue
            if is_contrib_quantization(checked.node) and context.target.uses_tensorrt:
                continue  # the build moves them to the standard domain, raising the opset
            if place.domain in ONNX_DOMAINS and _is_defined(place.op_type, context.model.opset):
                continue  # malformed, not unknown: FindInvalidNodesCheck says how
            if checked.node.domain == INVALID_DOMAIN and place.domain not in ONNX_DOMAINS:
                continue
            yield _classify(context, place)


def _is_defined(op_type: str, opset: int) -> bool:
    try:
        return not defs.get_schema(op_type, opset, "").deprecated
    except (defs.SchemaError, TypeError):  # TypeError: an opset beyond 31 bits
        return False


def _classify(context: CheckContext, place: Place) -> Finding:
    name = f"{place.domain or 'ai.onnx'}.{place.op_type}"
    domain = "" if place.domain in ONNX_DOMAINS else place.domain
    uses_tensorrt = context.target.uses_tensorrt
    if place.op_type in context.baseline.contrib.get(domain, ()):
        return CONTRIB_OPERATOR.at(
            place,
            f"{name} is an operator of ONNX Runtime; {context.target.engine_title} has no such "
            "operator",
            f"{_EXPORT_AGAIN}, or supply a TensorRT plugin named {place.op_type!r}.",
            severity=None if uses_tensorrt else Severity.NOTE,
        )
    if uses_tensorrt and place.op_type in context.table.plugins:
        return PLUGIN_OPERATOR.at(
            place,
            f"{name} is a TensorRT plugin; ONNX Runtime cannot run it, so there is no FP32 "
            "baseline to compare the engine with",
            "Export without the plugin and add it after the parity check, or build with parity "
            "switched off.",
        )
    if domain == "" and defs.has(place.op_type):
        return _report_wrong_opset(context, place)
    if place.op_type in context.baseline.without_kernel:
        reason = f"{name} is an operator of ONNX Runtime that no CPU can run"
    else:
        reason = f"nobody knows the operator {name}: neither ONNX, ONNX Runtime nor TensorRT"
    return UNKNOWN_OPERATOR.at(
        place,
        reason,
        "Replace it by standard operators when exporting"
        + (f", or supply a TensorRT plugin named {place.op_type!r}." if uses_tensorrt else "."),
    )


def _report_wrong_opset(context: CheckContext, place: Place) -> Finding:
    newest = defs.get_schema(place.op_type)
    opset = context.model.opset
    if newest.deprecated:
        reason = f"{place.op_type} was removed from ONNX in opset {newest.since_version}"
        remedy = "Export again with a current exporter, or lower the opset the file names."
    else:
        first = min(
            s.since_version
            for s in defs.get_all_schemas_with_history()
            if s.name == place.op_type and s.domain == ""
        )
        reason = f"{place.op_type} exists from opset {first} on"
        remedy = f"Export the model with opset {first} or newer."
    parsed = context.target.uses_tensorrt and (
        context.engine_status_of(place.op_type) is OperatorStatus.SUPPORTED
    )
    return UNKNOWN_OPERATOR.at(
        place,
        f"{reason}, but the file names opset {opset}",
        remedy,
        affects=Affects.BASELINE if parsed else Affects.BOTH,
    )
