"""AdoptContribQuantizationPass: ONNX Runtime's own Q/DQ nodes become those of ONNX."""

from __future__ import annotations

from onnx import NodeProto

from trtdeploy.core.dtypes import DType
from trtdeploy.graph.attributes import value_of
from trtdeploy.graph.index import build_index
from trtdeploy.graph.model import OnnxModel, walk_nodes
from trtdeploy.graph.passes.upgrade_opset import UpgradeOpsetPass

CONTRIB_DOMAIN = "com.microsoft"
Q_DQ_OPERATORS = frozenset({"QuantizeLinear", "DequantizeLinear"})
_FIRST_OPSET, _OPSET_WITH_AXIS = 10, 13
_SINCE = {
    DType.FLOAT16: 19, DType.FLOAT8E4M3FN: 19, DType.FLOAT8E5M2: 19, DType.INT16: 21,
    DType.UINT16: 21, DType.INT4: 21, DType.UINT4: 21,
}  # fmt: skip
"""First opset of ONNX in which the two take the type (ONNX operators)."""


class AdoptContribQuantizationPass:
    """Move ``com.microsoft.QuantizeLinear`` and ``DequantizeLinear`` to the standard domain.

    Before: ``com.microsoft.QuantizeLinear(x, s, z)``, as ONNX Runtime's quantizer writes with
    ``UseQDQContribOps``, and for 16-bit and 4-bit types. After: ``QuantizeLinear(x, s, z)``;
    operands, attributes and results are the same (ONNX Runtime docs/ContribOperators.md).
    Ensures: no node of the two is left in the other domain, except, without ``raise_opset``, those
    that this opset has no form of.
    """

    def __init__(self, *, raise_opset: bool = True) -> None:
        self.raise_opset = raise_opset

    def __call__(self, model: OnnxModel) -> None:
        """Rewrite ``model`` in place.

        Raises:
            ModelFileError: The opset that the nodes need cannot be reached.
        """
        if not any(is_contrib_quantization(node) for node in walk_nodes(model.graph)):
            return
        if self.raise_opset:
            UpgradeOpsetPass(max(_find_opsets(model).values()))(model)
        count = 0
        opsets = _find_opsets(model)
        for node in walk_nodes(model.graph):
            if is_contrib_quantization(node) and opsets[node.output[0]] <= model.opset:
                node.domain = ""
                count += 1
        if count:
            model.changes.append(f"{count} Q/DQ nodes of {CONTRIB_DOMAIN} became those of ONNX")


def is_contrib_quantization(node: NodeProto) -> bool:
    """True for ONNX Runtime's own QuantizeLinear and DequantizeLinear."""
    return (
        node.domain == CONTRIB_DOMAIN
        and node.op_type in Q_DQ_OPERATORS
        and len(node.input) > 1
        and len(node.output) > 0
    )


def _find_opsets(model: OnnxModel) -> dict[str, int]:
    """Return the first opset of ONNX that has each of the nodes, by the value it makes."""
    opsets = {}
    for scope, node in build_index(model).nodes():
        if is_contrib_quantization(node):
            types = [scope.type_of(name) for name in node.input if name]
            known = [_SINCE.get(dtype, _FIRST_OPSET) for dtype in types]
            with_axis = value_of(node, "axis") is not None
            opsets[node.output[0]] = max([_OPSET_WITH_AXIS if with_axis else _FIRST_OPSET, *known])
    return opsets
