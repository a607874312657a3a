"""What to call a node in a report: its own name, or its position."""

from __future__ import annotations

import re
from collections.abc import Iterator

from onnx import GraphProto, ModelProto, NodeProto

from trtdeploy.graph.model import subgraphs_of
from trtdeploy.preflight.finding import Place

_KEY = re.compile(r"#\d+(?:__\d+)*")
"""A key of ``label_nodes``; the ONNX inliner appends ``__1`` to the nodes of a function."""


def label_nodes(proto: ModelProto) -> dict[str, Place]:
    """Rename every node of ``proto`` to a unique key and return what the user calls it.

    Nodes of main graph, nested graphs and model-local functions are all renamed, so that messages
    of ONNX, which quote node names, can be traced back even when names are missing or repeated.
    """
    labels: dict[str, Place] = {}
    for label, node in _walk(proto):
        key = f"#{len(labels)}"
        labels[key] = Place(label, node.op_type, node.domain)
        node.name = key
    return labels


def place_of(labels: dict[str, Place], node: NodeProto) -> Place:
    """Return the user's place of a node of the renamed model, inlined copies included."""
    found = labels.get(node.name.partition("__")[0])
    return found or Place(node.name, node.op_type, node.domain)


def translate_keys(labels: dict[str, Place], text: str) -> str:
    """Replace the keys in a message of ONNX by the user's names."""

    def name(match: re.Match[str]) -> str:
        place = labels.get(match.group().partition("__")[0])
        return place.node if place else match.group()

    return _KEY.sub(name, text)


def label_node(node: NodeProto, position: int, where: str = "") -> str:
    """Return the node's name, or its position in the graph that ``where`` names."""
    return node.name or f"unnamed #{position}{where}"


def name_body(body: GraphProto, owner: str) -> str:
    """Return where the nodes of a nested graph lie, to follow their position."""
    return f" in {body.name or 'a body'} of {owner!r}"


def _walk(proto: ModelProto) -> Iterator[tuple[str, NodeProto]]:
    yield from _walk_graph(proto.graph, "")
    for function in proto.functions:
        where = f" in function {function.domain}::{function.name}"
        for position, node in enumerate(function.node):
            label = label_node(node, position, where)
            yield label, node
            yield from _walk_bodies(node, label)


def _walk_graph(graph: GraphProto, where: str) -> Iterator[tuple[str, NodeProto]]:
    for position, node in enumerate(graph.node):
        label = label_node(node, position, where)
        yield label, node
        yield from _walk_bodies(node, label)


def _walk_bodies(node: NodeProto, label: str) -> Iterator[tuple[str, NodeProto]]:
    for body in subgraphs_of(node):
        yield from _walk_graph(body, name_body(body, label))
