"""Reshapes whose target fixes the batch, or moves it to another axis, and nodes to repair them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from onnx import NodeProto, helper, numpy_helper

from trtdeploy.export.onnx.batch_flow import BatchFlow, Growth, Known, grow, list_batch_axes
from trtdeploy.graph.attributes import integer_of
from trtdeploy.graph.constant_values import read_constant
from trtdeploy.graph.index import Scope
from trtdeploy.graph.model import OnnxModel
from trtdeploy.graph.naming import NameSource


class GraphEditor:
    """Writes the main graph of a model anew, node by node; ``finish`` puts it in place.

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


@dataclass(frozen=True)
class _FixedReshape:
    """A Reshape whose result should grow along ``axis``."""

    node: NodeProto
    before: Growth
    after: Known
    axis: int

    @property
    def copies_zero(self) -> bool:
        """True when a 0 in the target takes over the operand's size."""
        return not integer_of(self.node, "allowzero", 0)


class ReshapeRepair:
    """Repairs Reshapes of the main graph of one model.

    Args:
        batch: The batch that it was exported with.
        sizes_vary: Other axes than the batch are dynamic.
    """

    def __init__(self, model: OnnxModel, scope: Scope, batch: int, *, sizes_vary: bool) -> None:
        self._model = model
        self._scope = scope
        self._batch = batch
        self._sizes_vary = sizes_vary

    def apply(self, node: NodeProto, flow: BatchFlow, editor: GraphEditor) -> None:
        """Repair ``node`` when it needs that; new nodes come before it."""
        before = flow.growth_of(node.input[0])
        after = flow.small.known_shape_of(node.output[0])
        if before is None or not after:
            return
        target = read_constant(self._model, self._scope, node.input[1])
        sizes = None if target is None else [int(size) for size in target.ravel()]
        axes = [
            axis
            for axis in list_batch_axes(before, after, self._batch)
            if not self._must_stay(node, axis, after, flow)
        ]
        if not axes or (sizes is not None and len(sizes) != len(after)):
            return
        fixed = _FixedReshape(node, before, after, axes[0])
        if sizes is None:
            found = flow.large.known_shape_of(node.output[0])
            if found is not None and found not in [grow(after, axis) for axis in axes]:
                _scale_target(fixed, editor)
            return
        found = apply_target(sizes, before.large, copies_zero=fixed.copies_zero)
        writes_batch = sizes[fixed.axis] == after[fixed.axis] == self._batch
        if writes_batch or found not in [grow(after, axis) for axis in axes]:
            self._repair_constant(fixed, sizes, editor)

    def _must_stay(self, node: NodeProto, axis: int, after: Known, flow: BatchFlow) -> bool:
        """True for an axis that a matrix product with fixed weights sums over."""
        if axis != len(after) - 1:
            return False
        products = (
            use.node
            for use in self._scope.uses_of(node.output[0])
            if use.node.op_type in ("Gemm", "MatMul") and use.slot == 0
        )
        return any(flow.is_constant(product.input[1]) for product in products)

    def _repair_constant(self, fixed: _FixedReshape, sizes: list[int], editor: GraphEditor) -> None:
        new, larger = self._rewrite(sizes, fixed), fixed.before.large
        wanted = grow(fixed.after, fixed.axis)
        if new is None or apply_target(new, larger, copies_zero=fixed.copies_zero) != wanted:
            _scale_target(fixed, editor)
            return
        fixed.node.input[1] = editor.add_constant(new, f"{fixed.node.input[1]}_free")
        editor.record(
            f"Reshape {fixed.node.name!r} takes the batch from its operand: target {sizes} "
            f"became {new}"
        )

    def _rewrite(self, sizes: list[int], fixed: _FixedReshape) -> list[int] | None:
        """Return a constant target that lets the batch through; None when there is none."""
        new, axis, before = list(sizes), fixed.axis, fixed.before
        if fixed.copies_zero and before.axis == axis and before.small[axis] == fixed.after[axis]:
            new[axis] = 0
            return new
        if -1 in sizes and sizes[axis] != -1:
            if self._sizes_vary:
                return None
            new[sizes.index(-1)] = fixed.after[sizes.index(-1)]
        new[axis] = -1
        return new


def _scale_target(fixed: _FixedReshape, editor: GraphEditor) -> None:
    """Multiply one entry of the target by how much the batch has grown."""
    times = editor.add_growth(fixed.node.input[0], fixed.before)
    factors = editor.add_factors(times, fixed.axis, len(fixed.after))
    fixed.node.input[1] = editor.add_node("Mul", [fixed.node.input[1], factors])
    editor.record(
        f"Reshape {fixed.node.name!r} takes the batch from its operand: entry {fixed.axis} of its "
        "target grows with it"
    )


def apply_target(target: Sequence[int], shape: Known, *, copies_zero: bool = True) -> Known | None:
    """Return what a Reshape makes of ``shape``; None when the elements do not fit.

    A -1 in the target takes what is left; a 0 takes over the operand's size where ``copies_zero``
    (ONNX operator specification).
    """
    sizes = [
        shape[axis] if size == 0 and copies_zero and axis < len(shape) else size
        for axis, size in enumerate(target)
    ]
    total, known = math.prod(shape), math.prod(size for size in sizes if size != -1)
    if -1 not in sizes:
        return tuple(sizes) if known == total else None
    if sizes.count(-1) != 1 or known <= 0 or total % known:
        return None
    return tuple(total // known if size == -1 else size for size in sizes)
