"""FoldBiasAddsPass: a constant added to the result of a convolution becomes its bias."""

from __future__ import annotations

from onnx import NodeProto

from trtdeploy.graph.constant_values import read_constant
from trtdeploy.graph.index import ModelIndex, build_index
from trtdeploy.graph.layer_operands import (
    BIAS_SLOT,
    CONVOLUTIONS,
    Channels,
    find_layer_weight,
    is_read_once,
    read_bias,
    spread_bias,
    store_bias,
    take_over_result,
)
from trtdeploy.graph.model import ONNX_DOMAINS, OnnxModel
from trtdeploy.graph.naming import NameSource
from trtdeploy.graph.passes.drop_unused_constants import DropUnusedConstantsPass


class FoldBiasAddsPass:
    """Fold ``y = Conv(x, w) + b`` with one constant number per output channel, in the main graph.

    Before: ``Conv(x, w) -> c -> Add(b)``, ``b`` of shape (1, C, 1, 1), as Paddle exports write
    every bias. After: ``Conv(x, w, b)``, ``b`` of shape (C,). So too for ConvTranspose, and where
    the layer has a bias already. Otherwise each such Add looks like a residual connection, which
    wants a Q/DQ pair.
    Ensures: nodes keep their names, and results theirs. ``model.changes`` says how many were
    folded.
    """

    def __call__(self, model: OnnxModel) -> None:
        """Rewrite ``model`` in place; it must be normalised."""
        index = build_index(model)
        names = NameSource.for_graph(model.graph)
        kept = [node for node in index.main.nodes if not _fold(index, names, node)]
        count = len(index.main.nodes) - len(kept)
        if not count:
            return
        del model.graph.node[:]
        model.graph.node.extend(kept)
        DropUnusedConstantsPass()(model)
        added = "1 constant" if count == 1 else f"{count} constants"
        model.changes.append(f"{added} added to convolutions became part of their bias")


def _fold(index: ModelIndex, names: NameSource, add: NodeProto) -> bool:
    """Fold ``add`` into the layer before it, if that is possible."""
    if add.op_type != "Add" or add.domain not in ONNX_DOMAINS:
        return False
    for result, constant in (add.input, reversed(add.input)):
        layer = index.main.producers.get(result)
        if layer is None or layer.op_type not in CONVOLUTIONS:
            continue
        bias = _combine_bias(index, layer, constant)
        if bias is not None and is_read_once(index.main, result):
            store_bias(index, names, layer, BIAS_SLOT, bias)
            take_over_result(index.main, layer, add)
            return True
    return False


def _combine_bias(index: ModelIndex, layer: NodeProto, constant: str) -> Channels | None:
    weight = find_layer_weight(index.main, layer)
    added = read_constant(index.model, index.main, constant)
    if weight is None or added is None:
        return None
    rank = len(weight.tensor.dims)
    missing = rank - added.ndim
    channels = added.shape[1 - missing] if 0 <= missing <= 1 else 1
    if missing < 0 or added.size != channels:
        return None
    more = spread_bias(added, weight.outputs)
    bias = read_bias(index, layer, BIAS_SLOT, weight.outputs)
    return None if bias is None or more is None else bias + more
