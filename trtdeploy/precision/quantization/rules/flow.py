"""Walks over the main graph along the data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from onnx import NodeProto

from trtdeploy.graph.index import ModelIndex, Scope, Use


def find_reached(
    index: ModelIndex, seeds: Iterable[str], carries: Callable[[NodeProto, frozenset[str]], bool]
) -> set[str]:
    """Return the values of the main graph that seeds turn into.

    Args:
        index: The model, its nodes sorted.
        seeds: Values to start from.
        carries: Whether a node's results count, given those of its operands that do.
    """
    reached = set(seeds)
    for node in index.main.nodes:
        found = reached.intersection(node.input)
        if found and carries(node, frozenset(found)):
            reached.update(name for name in node.output if name)
    return reached


def data_of(scope: Scope, node: NodeProto) -> Iterator[str]:
    """Yield the operands that are no constants."""
    for name in node.input:
        if name and scope.constant_of(name) is None:
            yield name


def outer_reader(use: Use) -> NodeProto:
    """Return the node of the main graph that reads, or contains what reads."""
    scope, node = use.scope, use.node
    while scope.parent is not None and scope.owner is not None:
        node, scope = scope.owner, scope.parent
    return node
