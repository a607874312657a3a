"""KeepLastLayerRule: layers that compute the model's results."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import NodeProto

from trtdeploy.graph.model import subgraphs_of, walk_graphs
from trtdeploy.precision.quantization.layers import LAYER_OPERATORS
from trtdeploy.precision.quantization.rules.box_decode import find_box_decoders
from trtdeploy.precision.quantization.rules.flow import outer_reader
from trtdeploy.precision.quantization.rules.rule import Kept, LayerContext


class KeepLastLayerRule:
    """Keep layers without another layer behind them, but for the decoding of boxes.

    Nothing behind them evens their error out: scores, coordinates, logits. Off in small models.
    """

    is_binding = False

    def find(self, context: LayerContext) -> Iterator[Kept]:
        """Yield the last layers."""
        if not context.has_many_layers:
            return
        leading = _find_nodes_before_layers(context)
        for name, layer in context.layers.items():
            if layer.weight is not None and layer.scope.owner is None and name not in leading:
                yield name, "a last layer: no other layer follows"


def _holds_layer(node: NodeProto) -> bool:
    bodies = (graph for body in subgraphs_of(node) for graph in walk_graphs(body))
    inner = (nested.op_type for graph in bodies for nested in graph.node)
    return node.op_type in LAYER_OPERATORS or any(op_type in LAYER_OPERATORS for op_type in inner)


def _find_nodes_before_layers(context: LayerContext) -> set[str]:
    """Return the nodes of the main graph that a layer depends on."""
    main = context.index.main
    decoders = set(find_box_decoders(context))
    holders = {node.name for node in main.nodes if node.name not in decoders and _holds_layer(node)}
    leading: set[str] = set()
    for node in reversed(main.nodes):
        readers = {
            outer_reader(use).name for name in node.output for use in main.uses.get(name, [])
        }
        if readers & holders or readers & leading:
            leading.add(node.name)
    return leading
