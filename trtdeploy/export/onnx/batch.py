"""A batch that the inside of a file fixes is made free again."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import NodeProto

from trtdeploy.config.batch_layout import BatchLayout
from trtdeploy.export.onnx.batch_flow import BatchFlow, Growth
from trtdeploy.export.onnx.reshape import GraphEditor, ReshapeRepair
from trtdeploy.graph.attributes import integer_of
from trtdeploy.graph.index import build_index
from trtdeploy.graph.model import ONNX_DOMAINS, OnnxModel

_MOST_ROUNDS = 256
"""Each round repairs what the one before made visible; a deep model needs one per layer."""

_STATES = {"GRU": (5,), "LSTM": (5, 6), "RNN": (5,)}
"""Operand slots of initial states (ONNX operator specification)."""


class FreeBatchPass:
    """Let the batch through where sizes of the example were written into the graph.

    Before: ``Reshape(x, [1, 216])`` of a ``batch x 6 x 6 x 6`` value; ``Concat`` of a ``1x1x192``
    class token and a ``batch x 196 x 192`` value; an LSTM whose initial state has a batch of 1.
    After: ``Reshape(x, [0, 216])``; the token and the state expanded to the batch at hand.
    Shapes are inferred at two batches; a Reshape whose result does not grow as its operand does is
    repaired, and so on until nothing is left to repair. Where a constant target cannot say it, or
    the target is computed, the batch is taken from a Shape.
    Ensures: at the batch that the file was exported with, every value is what it was. Whatever
    could not be repaired is as before; the pre-flight names it.

    Args:
        batch: The one to free, with the size that the file was exported with.
        sizes: Sizes of the other dynamic axes to infer shapes with, by symbol.
    """

    def __init__(self, batch: BatchLayout, sizes: Mapping[str, int]) -> None:
        self.batch = batch
        self.sizes = sizes

    def __call__(self, model: OnnxModel) -> None:
        """Rewrite the main graph of ``model`` in place; it must be normalized."""
        for _ in range(_MOST_ROUNDS):
            flow = BatchFlow(model, self.batch, self.sizes)
            # what looks fixed behind a fixed Reshape may be free once that is repaired
            if not (self._repair_reshapes(model, flow) or self._repair_operands(model, flow)):
                return

    def _repair_reshapes(self, model: OnnxModel, flow: BatchFlow) -> int:
        editor, scope = GraphEditor(model), build_index(model).main
        repair = ReshapeRepair(model, scope, self.batch.exported, sizes_vary=bool(self.sizes))
        outdated: set[str] = set()  # shapes behind a repair are those of before it
        for node in scope.nodes:
            count = editor.repairs
            if outdated.intersection(node.input):
                outdated.update(node.output)
            elif node.op_type == "Reshape" and node.domain in ONNX_DOMAINS:
                repair.apply(node, flow, editor)
                outdated.update(node.output if editor.repairs > count else ())
            editor.keep(node)
        editor.finish()
        return editor.repairs

    def _repair_operands(self, model: OnnxModel, flow: BatchFlow) -> int:
        if self.batch.exported != 1:
            return 0  # which of its samples would be repeated?
        editor, scope = GraphEditor(model), build_index(model).main
        for node in scope.nodes:
            if node.domain in ONNX_DOMAINS:
                _expand_operands(node, flow, editor)
            editor.keep(node)
        editor.finish()
        return editor.repairs


def _expand_operands(node: NodeProto, flow: BatchFlow, editor: GraphEditor) -> None:
    """Repeat what has a batch of 1 beside operands that grow, where nothing broadcasts."""
    grown = [(name, flow.growth_of(name)) for name in node.input]
    like, growth = next(((n, g) for n, g in grown if g is not None), ("", None))
    if growth is None:
        return
    if node.op_type == "Concat":
        if integer_of(node, "axis", 0) % len(growth.small) == growth.axis:
            return
        slots: tuple[int, ...] = tuple(range(len(node.input)))
    elif node.op_type in _STATES and like == node.input[0]:
        slots = tuple(slot for slot in _STATES[node.op_type] if slot < len(node.input))
    else:
        return
    for slot in slots:
        if _has_batch_of_one(node.input[slot], growth, flow):
            operand = node.input[slot]
            times = editor.add_growth(like, growth)
            target = editor.add_factors(times, growth.axis, len(growth.small))
            node.input[slot] = editor.add_node("Expand", [operand, target])
            editor.record(
                f"{node.op_type} {node.name!r} reads {operand!r} once per sample: it had a batch "
                "of 1"
            )


def _has_batch_of_one(name: str, growth: Growth, flow: BatchFlow) -> bool:
    small = flow.small.known_shape_of(name) if name and flow.is_constant(name) else None
    return small is not None and len(small) == len(growth.small) and small[growth.axis] == 1
