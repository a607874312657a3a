"""DropUnusedConstantsPass: initializers that nobody reads disappear."""

from __future__ import annotations

from trtdeploy.graph.model import OnnxModel, walk_graphs


class DropUnusedConstantsPass:
    """Remove initializers that no node and no graph output names.

    Ensures: every initializer is used, and ``model.weights`` names only initializers.
    """

    def __call__(self, model: OnnxModel) -> None:
        """Rewrite ``model`` in place."""
        used: set[str] = set()
        for graph in walk_graphs(model.graph):
            used.update(value.name for value in graph.output)
            for node in graph.node:
                used.update(node.input)
        for graph in walk_graphs(model.graph):
            kept = [tensor for tensor in graph.initializer if tensor.name in used]
            if len(kept) != len(graph.initializer):
                del graph.initializer[:]
                graph.initializer.extend(kept)
        for name in model.weights.keys() - used:
            del model.weights[name]
