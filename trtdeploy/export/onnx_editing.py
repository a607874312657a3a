"""Adding nodes to the main graph of a model while it is walked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto, helper, numpy_helper

from trtdeploy.export.onnx_batch_flow import Growth
from trtdeploy.graph.model import OnnxModel
from trtdeploy.graph.naming import NameSource


class GraphEditor:
    """Writes the main graph anew, node by node.

    Args:
        model: The model; its nodes are replaced by ``finish``.

    Attributes:
        repairs: How many changes were recorded.
    """

    def __init__(self, model: OnnxModel) -> None:
        self.repairs = 0
        self._model = model
        self._names = NameSource.for_graph(model.graph)
        self._nodes: list[NodeProto] = []

    def keep(self, node: NodeProto) -> None:
        """Append a node of the graph."""
        self._nodes.append(node)

    def record(self, sentence: str) -> None:
        """Say what was repaired."""
        self.repairs += 1
        self._model.changes.append(sentence)

    def finish(self) -> None:
        """Make the nodes those of the graph, when anything was repaired."""
        if self.repairs:
            del self._model.graph.node[:]
            self._model.graph.node.extend(self._nodes)

    def add_node(self, op_type: str, inputs: Sequence[str], *, axis: int | None = None) -> str:
        """Append a node with one result and return the result's name."""
        name = self._names.make(f"free_batch_{op_type.lower()}")
        node = helper.make_node(op_type, inputs, [name], name=name)
        if axis is not None:
            node.attribute.append(helper.make_attribute("axis", axis))
        self._nodes.append(node)
        return name

    def add_constant(self, values: Sequence[int], wanted: str = "free_batch_constant") -> str:
        """Add a 1-D int64 constant and return its name."""
        name = self._names.make(wanted)
        tensor = numpy_helper.from_array(np.array(values, np.int64), name)
        self._model.graph.initializer.append(tensor)
        return name

    def add_growth(self, source: str, grown: Growth) -> str:
        """Add nodes that compute how often the exported batch fits in the one at hand (1-D)."""
        shape = self.add_node("Shape", [source])
        size = self.add_node("Gather", [shape, self.add_constant([grown.axis])], axis=0)
        exported = grown.small[grown.axis]
        if exported == 1:
            return size
        return self.add_node("Div", [size, self.add_constant([exported])])

    def add_factors(self, times: str, axis: int, rank: int) -> str:
        """Add a vector of ``rank`` ones with ``times`` at ``axis``."""
        parts = [self.add_constant([1] * axis)] if axis else []
        parts.append(times)
        if axis < rank - 1:
            parts.append(self.add_constant([1] * (rank - 1 - axis)))
        return self.add_node("Concat", parts, axis=0) if len(parts) > 1 else times
