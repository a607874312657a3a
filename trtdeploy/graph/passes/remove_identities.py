"""RemoveIdentitiesPass: readers of an Identity read what it copies."""

from __future__ import annotations

from trtdeploy.graph.index import build_index
from trtdeploy.graph.model import ONNX_DOMAINS, OnnxModel, walk_nodes


class RemoveIdentitiesPass:
    """Remove ``y = Identity(x)``, in every graph.

    Exporters wrap constants and layer borders in Identity nodes (a third of all nodes in a Paddle
    export); rules that look for a constant operand must not stop at them. An Identity that
    produces a graph output stays, because the output's name belongs to the user.
    Ensures: every Identity left produces a graph output.
    """

    def __call__(self, model: OnnxModel) -> None:
        """Rewrite ``model`` in place."""
        if not any(node.op_type == "Identity" for node in walk_nodes(model.graph)):
            return
        index = build_index(model)
        removed: set[int] = set()
        for scope, node in index.nodes():
            if node.op_type != "Identity" or node.domain not in ONNX_DOMAINS:
                continue
            owner = scope.resolve(node.input[0])
            if node.output[0] in scope.outputs or owner is None:
                continue
            readers = scope.uses.get(node.output[0], [])
            for use in readers:
                use.node.input[use.slot] = node.input[0]
            owner.uses[node.input[0]].extend(readers)  # the next Identity of a chain finds them
            removed.add(id(node))
        # innermost first: rebuilding a graph copies its nodes, bodies included
        for scope in reversed(index.scopes):
            kept = [node for node in scope.nodes if id(node) not in removed]
            if len(kept) != len(scope.nodes):
                del scope.graph.node[:]
                scope.graph.node.extend(kept)
