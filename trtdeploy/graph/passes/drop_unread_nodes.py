"""DropUnreadNodesPass: nodes whose results nobody reads disappear."""

from __future__ import annotations

from collections import Counter

from onnx import GraphProto, NodeProto

from trtdeploy.graph.model import OnnxModel, subgraphs_of, walk_graphs, walk_nodes


class DropUnreadNodesPass:
    """Remove nodes none of whose results reach an output, in every graph.

    Before: ``Shape(x)`` left behind by a folded chain. After: it is gone, and so is what only it
    read.
    Ensures: every node has a result that a node or an output names.
    """

    def __call__(self, model: OnnxModel) -> None:
        """Rewrite ``model`` in place; its graphs must be sorted."""
        reads = Counter(name for node in walk_nodes(model.graph) for name in node.input)
        for graph in walk_graphs(model.graph):
            reads.update(value.name for value in graph.output)
        dropped = _drop(model.graph, reads)
        if dropped:
            nodes = "1 node" if dropped == 1 else f"{dropped} nodes"
            model.changes.append(f"{nodes} dropped whose results nothing reads")


def _drop(graph: GraphProto, reads: Counter[str]) -> int:
    kept: list[NodeProto] = []
    dropped = 0
    for node in reversed(graph.node):
        if any(reads[name] for name in node.output if name):
            for body in subgraphs_of(node):
                dropped += _drop(body, reads)
            kept.append(node)
            continue
        inner = [n for body in subgraphs_of(node) for n in walk_nodes(body)]
        for gone in (node, *inner):
            reads.subtract(gone.input)
        for body in subgraphs_of(node):
            for nested in walk_graphs(body):
                reads.subtract(value.name for value in nested.output)
        dropped += 1
    if dropped and len(kept) != len(graph.node):
        kept.reverse()
        copies = [NodeProto.FromString(node.SerializeToString()) for node in kept]
        del graph.node[:]
        graph.node.extend(copies)
    return dropped
