"""Walks from a node to those that read its results."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from onnx import NodeProto

from trtdeploy.graph.index import Scope


class Reader(NamedTuple):
    """A node that reads ``name``, and the graph it lies in."""

    scope: Scope
    node: NodeProto
    name: str


def walk_readers(
    scope: Scope,
    node: NodeProto,
    goes_on: Callable[[Reader], bool],
    *,
    seen: set[str] | None = None,
    max_steps: int | None = None,
) -> Iterator[Reader]:
    """Yield everything that reads ``node``, directly or behind nodes that let the value through.

    Args:
        scope: The graph ``node`` lies in.
        node: Where to start; it is not yielded.
        goes_on: Whether to look at the readers of a reader too.
        seen: Names of nodes not to yield; every yielded node is added. Shared by several walks
            it keeps their sum linear in the size of the model, however often branches rejoin.
        max_steps: How many nodes may lie in between.
    """
    seen = set() if seen is None else seen
    pending = deque([(scope, node, 0)])
    while pending:
        scope, node, steps = pending.popleft()
        for reader in _find_readers(scope, node):
            if reader.node.name in seen:
                continue
            seen.add(reader.node.name)
            yield reader
            if (max_steps is None or steps < max_steps) and goes_on(reader):
                pending.append((reader.scope, reader.node, steps + 1))


def _find_readers(scope: Scope, node: NodeProto) -> Iterator[Reader]:
    """Yield direct readers; the result of a branch or loop body is read by the node around it."""
    for name in node.output:
        for use in scope.uses_of(name):
            yield Reader(use.scope, use.node, name)
        if name in scope.outputs and scope.owner is not None and scope.parent is not None:
            yield Reader(scope.parent, scope.owner, name)
