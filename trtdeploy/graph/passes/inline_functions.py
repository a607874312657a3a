"""InlineFunctionsPass: model-local functions become plain nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter

from onnx import ModelProto, NodeProto, inliner, shape_inference

from trtdeploy.core.errors import ModelFileError
from trtdeploy.graph.model import ONNX_ERRORS, OnnxModel, subgraphs_of, walk_nodes

_MOST_NODES = 1 << 18
"""Large models have some ten thousand; functions that double each other reach any number."""


class InlineFunctionsPass:
    """Replace calls of model-local functions by their bodies.

    Before: ``y = local.Gelu(x)`` plus a function ``Gelu``. After: the nodes of its body.
    Ensures: ``model.proto.functions`` is empty.
    """

    def __call__(self, model: OnnxModel) -> None:
        """Rewrite ``model`` in place.

        Raises:
            ModelFileError: A function calls itself, is written for another opset and cannot be
                converted, or would become more nodes than any model has.
        """
        if not model.proto.functions:
            return
        if _count_nodes(model.proto) > _MOST_NODES:
            raise ModelFileError(
                f"{model.path}: its model-local functions call each other so often that inlining "
                f"them gives more than {_MOST_NODES} nodes",
                hint="Export the model again with plain operators.",
            )
        count = len(model.proto.functions)
        try:
            inlined = _inline(model.proto)
        except ONNX_ERRORS as error:
            raise ModelFileError(
                f"{model.path}: its model-local functions cannot be inlined: {error}",
                hint="Export the model again with plain operators.",
            ) from error
        del inlined.functions[:]  # what is left was never called
        model.proto.CopyFrom(inlined)
        model.changes.append(f"{count} model-local functions inlined")


def _count_nodes(proto: ModelProto) -> int:
    """Return how many nodes inlining gives; 0 where functions call themselves."""
    bodies = {(f.domain, f.name): list(_walk_body(f.node)) for f in proto.functions}
    sizes: dict[tuple[str, str], int] = {}
    called = {
        key: {n for n in _list_operators(body) if n in bodies} for key, body in bodies.items()
    }
    try:
        for key in TopologicalSorter(called).static_order():
            sizes[key] = sum(sizes.get(operator, 1) for operator in _list_operators(bodies[key]))
    except CycleError:
        return 0  # the inliner names it
    return sum(sizes.get(operator, 1) for operator in _list_operators(walk_nodes(proto.graph)))


def _walk_body(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    for node in nodes:
        yield node
        for body in subgraphs_of(node):
            yield from walk_nodes(body)


def _list_operators(nodes: Iterable[NodeProto]) -> list[tuple[str, str]]:
    return [(node.domain, node.op_type) for node in nodes]


def _inline(proto: ModelProto) -> ModelProto:
    inlined = inliner.inline_local_functions(proto)
    if inlined.functions:  # written for another opset; their conversion needs types
        typed = shape_inference.infer_shapes(inlined)
        inlined = inliner.inline_local_functions(typed, convert_version=True)
    return inlined
