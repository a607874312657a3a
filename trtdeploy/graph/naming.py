"""Names that nothing else in a model has."""

from __future__ import annotations

from collections.abc import Iterable

from onnx import GraphProto

from trtdeploy.graph.model import walk_graphs


class NameSource:
    """Hands out names that are not taken yet.

    Args:
        taken: Names in use.
    """

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)
        self._counts: dict[str, int] = {}

    @classmethod
    def for_graph(cls, graph: GraphProto) -> NameSource:
        """Return a source of names that no value and no node has, nested graphs included."""
        taken: set[str] = set()
        for scope in walk_graphs(graph):
            for values in (scope.input, scope.output, scope.value_info):
                taken.update(value.name for value in values)
            taken.update(tensor.name for tensor in scope.initializer)
            taken.update(sparse.values.name for sparse in scope.sparse_initializer)
            for node in scope.node:
                taken.add(node.name)
                taken.update(node.input)
                taken.update(node.output)
        return cls(taken)

    def make(self, wanted: str) -> str:
        """Return ``wanted``, or ``wanted_2``, ``wanted_3``... when it is taken."""
        name, count = wanted, self._counts.get(wanted, 1)
        while name in self._taken:
            count += 1
            name = f"{wanted}_{count}"
        self._counts[wanted] = count
        self._taken.add(name)
        return name
