"""FindNodeNamesCheck: several nodes of one graph under one name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from trtdeploy.graph.model import walk_graphs
from trtdeploy.preflight.context import CheckContext
from trtdeploy.preflight.finding import Affects, Finding, FindingKind, Place, Severity

DUPLICATE_NODE_NAME = FindingKind("duplicate-node-name", Severity.HAZARD, Affects.BASELINE)


class FindNodeNamesCheck:
    """Find names that several nodes of one graph share.

    ONNX Runtime refuses such a file, TensorRT only warns. trtdeploy renames all but one
    (NameNodesPass), so this is no blocker.
    """

    def find(self, context: CheckContext) -> Iterator[Finding]:
        """Yield one finding per repeated name."""
        for graph in walk_graphs(context.model.graph):
            holders = defaultdict(list)
            for position, node in enumerate(graph.node):
                if node.name:
                    holders[node.name].append((position, node))
            for name, found in holders.items():
                if len(found) == 1:
                    continue
                where = ", ".join(f"#{position} ({node.op_type})" for position, node in found)
                yield DUPLICATE_NODE_NAME.at(
                    Place(name, found[0][1].op_type, found[0][1].domain),
                    f"{len(found)} nodes are named {name!r}: {where}; ONNX Runtime refuses the "
                    "file as it is, so all but the first are renamed",
                    "Nothing to do; to keep your own names, make them unique when exporting.",
                )
