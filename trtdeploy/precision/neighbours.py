"""Smoothing of a plan: nodes that only move data follow what surrounds them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from onnx import NodeProto

from trtdeploy.core.dtypes import DType
from trtdeploy.graph.index import Scope
from trtdeploy.precision.context import RuleContext

MOVERS = frozenset(
    {"Reshape", "Transpose", "Unsqueeze", "Squeeze", "Flatten", "Slice", "Concat", "Split",
     "Gather", "GatherElements", "GatherND", "Expand", "Identity", "Tile", "Pad", "Cast",
     "DepthToSpace", "SpaceToDepth", "ReverseSequence", "Dropout", "If"}
)  # fmt: skip
"""Operators whose results are copies of their operands; an If copies its branches' results."""


def find_fp32_movers(context: RuleContext, kept: set[str]) -> set[str]:
    """Return data-moving nodes that stay FP32, and observers of FP32 values.

    A mover stays FP32 on a way from an FP32 value to a node or output that wants one: narrowing
    there would lose the range that somebody was kept FP32 for. It also stays FP32 where nothing
    around it is narrow: two Casts would buy nothing.

    ``kept`` names the nodes that stay FP32 so far.
    """
    found = _MoverGraph(context, kept).find_fp32()
    wide = kept | found
    for scope, node in context.index.nodes():
        if node.name not in wide and _observes_fp32(context, scope, node, wide):
            found.add(node.name)
    return found


class _MoverGraph:
    """The movers of a model, how they feed each other, and what lies before and behind them.

    Attributes:
        after_fp32: Movers that read an FP32 value: of a kept node, an input, or an integer's Cast.
        after_narrow: Movers that read a narrow node's result.
        before_fp32: Movers that a kept node reads.
        before_narrow: Movers that a narrow node reads.
        before_output: Movers whose result is a graph output.
    """

    def __init__(self, context: RuleContext, kept: set[str]) -> None:
        self._context = context
        self._kept = kept
        movers = {
            node.name: (scope, node)
            for scope, node in context.index.nodes()
            if node.op_type in MOVERS
            and node.name not in kept
            and context.float_outputs(scope, node)
        }
        self.names = movers.keys()
        self.readers: dict[str, list[str]] = defaultdict(list)
        self.sources: dict[str, list[str]] = defaultdict(list)
        self.after_fp32: set[str] = set()
        self.after_narrow: set[str] = set()
        self.before_fp32: set[str] = set()
        self.before_narrow: set[str] = set()
        self.before_output: set[str] = set()
        for scope, node in movers.values():
            self._look_back(scope, node)
            self._look_ahead(scope, node)

    def find_fp32(self) -> set[str]:
        """Return the names of the movers that stay FP32."""
        after_fp32 = _flood(self.after_fp32, self.readers)
        after_narrow = _flood(self.after_narrow, self.readers)
        wanted = after_fp32 & _flood(self.before_fp32, self.sources)
        wanted |= _flood(self.before_output - after_narrow, self.sources)
        narrow = after_narrow - wanted
        narrow |= _flood(self.before_narrow | narrow, self.sources)
        return wanted | (self.names - narrow)

    def _look_back(self, scope: Scope, node: NodeProto) -> None:
        operands = list(self._operands(scope, node))
        if not operands:
            self.after_fp32.add(node.name)  # the Cast of an integer is exact
        for owner, name in operands:
            source = owner.producer_of(name)
            if source is None:
                if owner.constant_of(name) is None:
                    self.after_fp32.add(node.name)
            elif source.name in self.names:
                self.readers[source.name].append(node.name)
                self.sources[node.name].append(source.name)
            elif source.name in self._kept:
                self.after_fp32.add(node.name)
            else:
                self.after_narrow.add(node.name)

    def _operands(self, scope: Scope, node: NodeProto) -> Iterator[tuple[Scope, str]]:
        for _, name in self._context.float_inputs(scope, node):
            yield scope, name
        for body in scope.bodies_of(node):
            for value in body.graph.output:
                if body.type_of(value.name) is DType.FLOAT32:
                    yield body, value.name

    def _look_ahead(self, scope: Scope, node: NodeProto) -> None:
        for name in self._context.float_outputs(scope, node):
            for use in scope.uses_of(name):
                self._note_reader(node, use.scope, use.node)
            if name in scope.outputs:
                if scope.owner is None or scope.parent is None:
                    self.before_output.add(node.name)
                else:
                    self._note_reader(node, scope.parent, scope.owner)

    def _note_reader(self, node: NodeProto, scope: Scope, reader: NodeProto) -> None:
        if reader.name in self._kept:
            self.before_fp32.add(node.name)
        elif reader.name not in self.names and self._context.float_outputs(scope, reader):
            self.before_narrow.add(node.name)  # what has no such result follows its operands


def _flood(start: Iterable[str], edges: Mapping[str, list[str]]) -> set[str]:
    found = set(start)
    pending = list(found)
    while pending:
        for name in edges.get(pending.pop(), ()):
            if name not in found:
                found.add(name)
                pending.append(name)
    return found


def _observes_fp32(context: RuleContext, scope: Scope, node: NodeProto, wide: set[str]) -> bool:
    """True for comparisons, Casts to integers and the like that read an FP32 result."""
    operands = context.float_inputs(scope, node)
    if not operands or context.float_outputs(scope, node):
        return False
    for _, name in operands:
        producer = scope.producer_of(name)
        if producer is None and scope.constant_of(name) is None:
            return True  # a graph input, which arrives in FP32
        if producer is not None and producer.name in wide:
            return True
    return False
