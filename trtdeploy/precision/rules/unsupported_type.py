"""KeepUnsupportedTypeRule: operators that have no form in the narrow type."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import NodeProto

from trtdeploy.core.dtypes import DType
from trtdeploy.graph.index import Scope
from trtdeploy.graph.model import subgraphs_of
from trtdeploy.graph.schemas import OperatorTypes, find_operator_types
from trtdeploy.precision.context import RuleContext
from trtdeploy.precision.rules.rule import Kept

_CONTAINER_PREFIXES = ("Sequence", "Optional", "SplitToSequence", "ConcatFromSequence")


class KeepUnsupportedTypeRule:
    """Keep nodes the ONNX specification gives no narrow form, and nodes of unknown type."""

    def find(self, context: RuleContext) -> Iterator[Kept]:
        """Yield nodes without a narrow form."""
        for scope, node in context.index.nodes():
            reason = self._judge(context, scope, node)
            if reason:
                yield node.name, reason

    def _judge(self, context: RuleContext, scope: Scope, node: NodeProto) -> str:
        if node.op_type == "If":
            return ""
        if subgraphs_of(node):
            return f"{node.op_type} carries state between iterations, and rounding would add up"
        if node.op_type.startswith(_CONTAINER_PREFIXES):
            return f"{node.op_type} works on sequences or optional values"
        types = find_operator_types(node, context.index.model.opset)
        if types is None:
            domain = node.domain or "ai.onnx"
            return f"operator {domain}.{node.op_type} is not in the ONNX specification"
        return _judge_types(context, scope, node, types)


def _judge_types(context: RuleContext, scope: Scope, node: NodeProto, types: OperatorTypes) -> str:
    for name in [*node.input, *node.output]:
        if name and scope.type_of(name) is DType.UNDEFINED:
            return f"the element type of {name!r} is not known"
    forms = [types.input_allows(slot, context.low) for slot, _ in context.float_inputs(scope, node)]
    forms += [
        types.output_allows(slot, context.low)
        for slot, name in enumerate(node.output)
        if name and scope.type_of(name) is DType.FLOAT32
    ]
    if forms and not any(forms):
        opset = context.index.model.opset
        return f"{node.op_type} has no {context.low.label} form in opset {opset}"
    return ""
