"""FindWiringCheck: values defined twice, never, or too late."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Set

from onnx import GraphProto, NodeProto

from trtdeploy.graph.model import subgraphs_of
from trtdeploy.preflight.context import CheckContext
from trtdeploy.preflight.finding import (
    WHOLE_GRAPH,
    Affects,
    Finding,
    FindingKind,
    Severity,
)

UNDEFINED_VALUE = FindingKind("undefined-value", Severity.BLOCKER, Affects.BOTH)
DUPLICATE_VALUE = FindingKind("duplicate-value", Severity.BLOCKER, Affects.BOTH)
NOT_SORTED = FindingKind("not-sorted", Severity.BLOCKER, Affects.BOTH)

_DAMAGED = "Export the model again; a tool that edited the file has damaged it."
_SORT = (
    "Sort the nodes: every node after those whose results it reads. If that is impossible the "
    "graph has a cycle; export the model again."
)


class FindWiringCheck:
    """Find values that nobody defines, that two places define, or that are read before."""

    def find(self, context: CheckContext) -> Iterator[Finding]:
        """Yield one finding per value and reader."""
        yield from _check_graph(context, context.prepared.model.graph, frozenset())


def _check_graph(
    context: CheckContext, graph: GraphProto, outer: Set[str]
) -> Iterator[Finding]:
    constants = [t.name for t in graph.initializer]
    constants += [s.values.name for s in graph.sparse_initializer]
    inputs = [value.name for value in graph.input]
    made = [name for node in graph.node for name in node.output if name]
    yield from _report_duplicates(Counter(constants + inputs + made))
    known = {*outer, *constants, *inputs}
    later = set(made)
    for node in graph.node:
        yield from _check_reads(context, node, known, later)
        known.update(node.output)
        for body in subgraphs_of(node):
            yield from _check_graph(context, body, known | later)
    for value in graph.output:
        if value.name not in known:
            yield UNDEFINED_VALUE.at(
                WHOLE_GRAPH,
                f"the output {value.name!r} of graph {graph.name!r} is computed by no node",
                _DAMAGED,
            )


def _report_duplicates(definitions: Counter[str]) -> Iterator[Finding]:
    for name, count in definitions.items():
        if count > 1:
            yield DUPLICATE_VALUE.at(
                WHOLE_GRAPH, f"the value {name!r} is defined {count} times", _DAMAGED
            )


def _check_reads(
    context: CheckContext, node: NodeProto, known: Set[str], later: Set[str]
) -> Iterator[Finding]:
    for name in dict.fromkeys(node.input):
        if not name or name in known:
            continue
        place = context.place_of(node)
        if name in later:
            yield NOT_SORTED.at(
                place,
                f"reads {name!r}, which is computed by a node further down; ONNX wants nodes in "
                "order",
                _SORT,
            )
        else:
            yield UNDEFINED_VALUE.at(
                place,
                f"reads {name!r}, which is no input, no constant and no node's result",
                _DAMAGED,
            )
