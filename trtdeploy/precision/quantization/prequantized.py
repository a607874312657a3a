"""Pre-quantized models: which layers their Q/DQ pairs quantize, and whether more may be added."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import NodeProto

from trtdeploy.core.number_formats import QUANTIZED_TYPES, QuantizedType
from trtdeploy.graph.index import ModelIndex, Scope
from trtdeploy.graph.model import OnnxModel, walk_nodes
from trtdeploy.precision.neighbours import MOVERS
from trtdeploy.precision.operators import DEQUANTIZE, Q_DQ_OPERATORS, QUANTIZE
from trtdeploy.precision.quantization.layers import Layer
from trtdeploy.precision.quantization.plan import LayerDecision

PREQUANTIZED_RULE = "prequantized"
_QUANTIZERS = frozenset({QUANTIZE, "DynamicQuantizeLinear"})
_MAX_STEPS = 4


def has_pairs(model: OnnxModel) -> bool:
    """True when the model has a QuantizeLinear or DequantizeLinear."""
    return any(node.op_type in Q_DQ_OPERATORS for node in walk_nodes(model.graph))


def quantizes_activations(index: ModelIndex) -> bool:
    """True when the model quantizes values while it runs."""
    return any(node.op_type in _QUANTIZERS for _, node in index.nodes())


def find_prequantized_layers(
    index: ModelIndex, layers: Mapping[str, Layer]
) -> dict[str, LayerDecision]:
    """Return a decision for every layer that reads a DequantizeLinear.

    One that reads all of its operands from there computes in the 8-bit type; with fewer, the
    8-bit operand only saves memory.
    """
    found: dict[str, LayerDecision] = {}
    for name, layer in layers.items():
        slots = {*layer.data_slots, 1 if layer.weight_slot is None else layer.weight_slot}
        pairs = [_find_pair(layer.scope, layer.node.input[slot]) for slot in sorted(slots)]
        given = [pair for pair in pairs if pair is not None]
        if not given:
            continue
        kinds = {_kind_of(scope, node) for scope, node in given}
        kind = kinds.pop() if len(kinds) == 1 and len(given) == len(pairs) else None
        reason = f"pre-quantized: the model has {given[0][1].name!r} in front of it"
        if kind is None:
            reason += ", but not one 8-bit type for all of its operands"
        found[name] = LayerDecision(None if kind is None else kind.name, PREQUANTIZED_RULE, reason)
    return found


def _find_pair(scope: Scope, name: str) -> tuple[Scope, NodeProto] | None:
    """Return the DequantizeLinear behind an operand and moves, and its graph."""
    for _ in range(_MAX_STEPS):
        owner = scope.resolve(name)
        node = owner.producers.get(name) if owner else None
        if owner is None or node is None:
            return None
        if node.op_type == DEQUANTIZE:
            return owner, node
        if node.op_type not in MOVERS or not node.input:
            return None
        scope, name = owner, node.input[0]
    return None


def _kind_of(scope: Scope, node: NodeProto) -> QuantizedType | None:
    dtype = scope.type_of(node.input[0])
    return next((kind for kind in QUANTIZED_TYPES.values() if kind.dtype is dtype), None)
