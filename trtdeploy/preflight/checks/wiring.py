"""FindWiringCheck: values defined twice, never, or too late."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Set

from onnx import GraphProto

from trtdeploy.graph.model import subgraphs_of
from trtdeploy.preflight.context import CheckContext
from trtdeploy.preflight.finding import (
    WHOLE_GRAPH,
    Affects,
    Finding,
    FindingKind,
    Place,
    Severity,
)
from trtdeploy.preflight.labels import label_node, name_body

UNDEFINED_VALUE = FindingKind("undefined-value", Severity.BLOCKER, Affects.BOTH)
DUPLICATE_VALUE = FindingKind("duplicate-value", Severity.BLOCKER, Affects.BOTH)
NOT_SORTED = FindingKind("not-sorted", Severity.NOTE, Affects.BASELINE)

_DAMAGED = "Export the model again; a tool that edited the file has damaged it."


class FindWiringCheck:
    """Find values that nobody defines, that two places define, or that are read too early.

    Nodes out of order are only a note: runtimes sort them, and so does trtdeploy (SortNodesPass).
    """

    def find(self, context: CheckContext) -> Iterator[Finding]:
        """Yield one finding per value, and one per reader of an undefined value."""
        yield from _check_graph(context.model.graph, frozenset(), "")


def _check_graph(graph: GraphProto, outer: Set[str], where: str) -> Iterator[Finding]:
    constants = [t.name for t in graph.initializer]
    constants += [s.values.name for s in graph.sparse_initializer]
    given = set(constants)
    inputs = [value.name for value in graph.input if value.name not in given]
    made = [name for node in graph.node for name in node.output if name]
    yield from _report_duplicates(Counter(constants + inputs + made))
    known = {*outer, *constants, *inputs}
    later = set(made)
    for position, node in enumerate(graph.node):
        place = Place(label_node(node, position, where), node.op_type, node.domain)
        for name in dict.fromkeys(node.input):
            if name and name not in known:
                yield _report_read(place, name, is_late=name in later)
        known.update(node.output)
        for body in subgraphs_of(node):
            yield from _check_graph(body, known | later, name_body(body, place.node))
    yield from _check_outputs(graph, known)


def _report_duplicates(definitions: Counter[str]) -> Iterator[Finding]:
    for name, count in definitions.items():
        if count > 1:
            yield DUPLICATE_VALUE.at(
                WHOLE_GRAPH, f"the value {name!r} is defined {count} times", _DAMAGED
            )


def _report_read(place: Place, name: str, *, is_late: bool) -> Finding:
    if is_late:
        return NOT_SORTED.at(
            place,
            f"reads {name!r}, which is computed by a node further down; the nodes are sorted "
            "before anything else is done",
            "Nothing to do; ONNX wants nodes in order, and other tools may refuse the file.",
        )
    return UNDEFINED_VALUE.at(
        place, f"reads {name!r}, which is no input, no constant and no node's result", _DAMAGED
    )


def _check_outputs(graph: GraphProto, known: Set[str]) -> Iterator[Finding]:
    for value in graph.output:
        if value.name not in known:
            yield UNDEFINED_VALUE.at(
                WHOLE_GRAPH,
                f"the output {value.name!r} of graph {graph.name!r} is computed by no node",
                _DAMAGED,
            )
