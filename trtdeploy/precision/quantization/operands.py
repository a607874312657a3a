"""Where Q/DQ pairs go: the operands of quantized layers, and what can run in 8 bits around them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from onnx import NodeProto

from trtdeploy.core.number_formats import QuantizedType
from trtdeploy.graph.attributes import integer_of, value_of
from trtdeploy.graph.index import ModelIndex
from trtdeploy.graph.model import ONNX_DOMAINS
from trtdeploy.precision.quantization.layers import Layer
from trtdeploy.precision.quantization.plan import QuantizedOperand
from trtdeploy.precision.quantization.residuals import find_residuals, is_activation
from trtdeploy.precision.quantization.rules.activation_product import is_activation_product

CONCAT = "Concat"
_REARRANGERS = frozenset(
    {"Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze", "Identity", "DepthToSpace",
     "SpaceToDepth"}
)  # fmt: skip
"""Operators whose result holds every element of operand 0 once: both have the same range."""
_SELECTORS = frozenset({"Slice", "Split", "Gather", "MaxPool", "Resize"})
"""Operators whose results hold some of the elements of operand 0."""
Edge = tuple[str, int]
"""Name of a node and slot of its operand."""


class OperandPlacement:
    """Decides which operands of the main graph are read through Q/DQ pairs.

    The data operands of quantized layers are, and one operand of each residual Add. A node that
    only moves elements is *carried* when everything that reads it is read in 8 bits: its own
    operand passes a pair of the same scale too, so the compiler can run it on 8-bit data. The
    scale is then measured on the *root*: the value in front of all carried nodes.

    Args:
        index: The model that is planned.
        layers: Every layer by name.
        kinds: The 8-bit type of each quantized layer.
        kept: Names of nodes that stay FP32; none of them is carried.
    """

    def __init__(
        self,
        index: ModelIndex,
        layers: Mapping[str, Layer],
        kinds: Mapping[str, QuantizedType],
        kept: frozenset[str],
    ) -> None:
        self._index = index
        self._main = index.main
        self._edges: dict[Edge, QuantizedType] = {}
        self._unmoved: set[Edge] = set()
        for name, kind in kinds.items():
            for slot in layers[name].data_slots:
                self._edges[name, slot] = kind
                if is_activation_product(layers[name]):
                    self._unmoved.add((name, slot))  # fused attention wants the pair right there
        for add, slot, kind in find_residuals(index, kinds):
            if add not in kept:
                self._edges[add, slot] = kind
        self._carry(kept)

    def list_operands(self) -> tuple[QuantizedOperand, ...]:
        """Return all operands in graph order."""
        found, roots = [], find_roots(self._index, self._edges)
        for node in self._main.nodes:
            for slot, tensor in enumerate(node.input):
                kind = self._edges.get((node.name, slot))
                if kind is not None:
                    group = node.output[0] if node.op_type == CONCAT else roots.get(tensor, tensor)
                    found.append(QuantizedOperand(node.name, slot, tensor, kind, group))
        return tuple(found)

    def list_measured(self, operands: Iterable[QuantizedOperand]) -> tuple[str, ...]:
        """Return the values whose amax is needed, in graph order."""
        roots = find_roots(self._index, self._edges)
        needed = set()
        for operand in operands:
            needed |= {operand.group, roots.get(operand.tensor, operand.tensor)}
        values = [value.name for value in self._main.graph.input]
        values += [name for node in self._main.nodes for name in node.output]
        return tuple(name for name in values if name in needed)

    def _carry(self, kept: frozenset[str]) -> None:
        for node in reversed(self._main.nodes):
            slots = _moved_slots(node)
            kind = self._find_reading_kind(node) if slots and node.name not in kept else None
            if kind is not None and all(
                is_activation(self._main, node.input[slot]) for slot in slots
            ):
                self._edges.update({(node.name, slot): kind for slot in slots})

    def _find_reading_kind(self, node: NodeProto) -> QuantizedType | None:
        """Return the type in which every reader reads ``node``; None when they do not agree."""
        kinds: set[QuantizedType | None] = set()
        for name in node.output:
            if not name:
                continue
            if name in self._main.outputs:
                return None
            for use in self._main.uses.get(name, []):
                edge = (use.node.name, use.slot)
                carries = use.scope is self._main and edge not in self._unmoved
                kinds.add(self._edges.get(edge) if carries else None)
        return kinds.pop() if len(kinds) == 1 else None


def find_roots(index: ModelIndex, edges: Container[Edge]) -> dict[str, str]:
    """Return for each moved value the one whose range is, or bounds, its own.

    Args:
        index: The model, its nodes sorted.
        edges: Node and slot of what is read in 8 bits: nodes that move such an operand are carried.
    """
    main = index.main
    roots: dict[str, str] = {}
    for node in main.nodes:
        if node.op_type == CONCAT or not _moved_slots(node):
            continue
        source = node.input[0]
        same_range = (node.name, 0) in edges or node.op_type in _REARRANGERS
        if same_range and main.constant_of(source) is None:
            roots.update({name: roots.get(source, source) for name in node.output if name})
    return roots


def _moved_slots(node: NodeProto) -> tuple[int, ...]:
    """Return the operands whose elements ``node`` moves unchanged; none for other operators."""
    if node.domain not in ONNX_DOMAINS:
        return ()
    if node.op_type == CONCAT:
        return tuple(range(len(node.input)))
    moves = node.op_type in _REARRANGERS | _SELECTORS
    return (0,) if moves and _moves_unchanged(node) else ()


def _moves_unchanged(node: NodeProto) -> bool:
    if node.op_type == "MaxPool":
        return sum(bool(name) for name in node.output) == 1 and not integer_of(
            node, "storage_order", 0
        )
    if node.op_type == "Resize":
        return (
            value_of(node, "mode") in (None, "nearest")
            and value_of(node, "coordinate_transformation_mode") != "tf_crop_and_resize"
        )
    return True
