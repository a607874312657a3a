"""SortNodesPass: every node comes after the nodes whose results it reads."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

from onnx import GraphProto, NodeProto

from trtdeploy.core.errors import ModelFileError
from trtdeploy.graph.model import OnnxModel, subgraphs_of, walk_graphs


class SortNodesPass:
    """Bring the nodes of every graph into an order in which they can run.

    ONNX demands such an order, but ONNX Runtime and TensorRT read files without it, and some
    graph editors write them. Nodes that are in order already keep their place.
    Ensures: graphs are topologically sorted, values captured by nested graphs included.
    """

    def __call__(self, model: OnnxModel) -> None:
        """Rewrite ``model`` in place.

        Raises:
            ModelFileError: Nodes depend on each other in a circle.
        """
        # innermost first: rebuilding a graph copies its nodes, bodies included
        for graph in reversed(list(walk_graphs(model.graph))):
            sources = _find_sources(graph)
            if any(source >= i for i, found in enumerate(sources) for source in found):
                _reorder(graph, sources)


def _find_sources(graph: GraphProto) -> list[set[int]]:
    """Return, per node, the positions of the nodes whose results it reads."""
    positions = {name: i for i, node in enumerate(graph.node) for name in node.output if name}
    return [
        {positions[name] for name in _iterate_reads(node) if name in positions}
        for node in graph.node
    ]


def _iterate_reads(node: NodeProto) -> Iterator[str]:
    """Yield every name a node or its bodies read; bodies' own names match nothing outside."""
    yield from node.input
    for body in subgraphs_of(node):
        for graph in walk_graphs(body):
            for inner in graph.node:
                yield from inner.input


def _reorder(graph: GraphProto, sources: list[set[int]]) -> None:
    missing = [len(found) for found in sources]
    readers: list[list[int]] = [[] for _ in sources]
    for i, found in enumerate(sources):
        for source in found:
            readers[source].append(i)
    ready = [i for i, count in enumerate(missing) if not count]
    heapify(ready)
    order: list[int] = []
    while ready:
        order.append(heappop(ready))
        for reader in readers[order[-1]]:
            missing[reader] -= 1
            if not missing[reader]:
                heappush(ready, reader)
    if len(order) < len(sources):
        stuck = graph.node[min(set(range(len(sources))) - set(order))]
        raise ModelFileError(
            f"node {stuck.name!r} ({stuck.op_type}) depends on its own result",
            hint="The graph has a circle, which ONNX does not allow; export the model again.",
        )
    nodes = [graph.node[i] for i in order]
    del graph.node[:]
    graph.node.extend(nodes)
