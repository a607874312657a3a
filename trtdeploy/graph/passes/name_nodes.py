"""NameNodesPass: every node has a name of its own."""

from __future__ import annotations

from trtdeploy.graph.model import OnnxModel, walk_nodes
from trtdeploy.graph.naming import NameSource


class NameNodesPass:
    """Give unnamed nodes a name and rename the second and later holders of a name.

    ONNX Runtime refuses a file with duplicate node names and TensorRT only warns; decisions,
    pins and reports need one name per node.
    Ensures: node names are non-empty and unique over all graphs.
    """

    def __call__(self, model: OnnxModel) -> None:
        """Rewrite ``model`` in place."""
        nodes = list(walk_nodes(model.graph))
        names = NameSource(node.name for node in nodes)
        seen: set[str] = set()
        repaired: set[str] = set()
        for position, node in enumerate(nodes):
            if node.name in seen:
                repaired.add(node.name)
            if not node.name or node.name in seen:
                node.name = names.make(node.name or f"{node.op_type}_{position}")
            seen.add(node.name)
        for name in sorted(repaired):
            model.changes.append(f"several nodes were named {name!r}; all but one were renamed")
